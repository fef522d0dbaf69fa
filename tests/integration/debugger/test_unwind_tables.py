"""The unwind tables of real libraries, compared line by line with readelf's reading of them."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tdbg_call_frames as call_frames
import tdbg_images as images
from tdbg_unwind_tables import Function, UnwindTables

NAMES = {name: number for number, name in call_frames.X86_64.names.items()}
MOST_FUNCTIONS = 4000
WORDS = {"at": "c{:+d}", "undefined": "u", "same": "s", "at expression": "exp", "register": "{}"}


def mapped(name: str) -> tuple[str, int]:
    """(path, base) of a library in this process."""
    with open("/proc/self/maps") as lines:
        found = [each for each in images.parse_mappings(lines) if re.search(name, each.path)]
    return found[0].path, found[0].start


def readelf_rows(path: str) -> list[tuple[int, int, list[tuple[int, str, dict[str, str]]]]]:
    """(begin, end, rows) of each function; a row is (address, CFA, {column: rule})."""
    # Its exit status is 1 as soon as it warns, of a missing separate debug file for one.
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", path], capture_output=True, text=True).stdout
    found = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        head = re.search(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", lines[0]) if lines else None
        if head is None:
            continue
        columns = lines[1].split()[2:] if len(lines) > 1 else []
        rows = []
        for line in lines[2:]:
            parts = re.sub(r"\br\d+ \((\w+)\)", r"\1", line).split()  # r1 (rdx)
            rows.append((int(parts[0], 16), parts[1], dict(zip(columns, parts[2:], strict=False))))
        found.append((int(head[1], 16), int(head[2], 16), rows))
    return found


def ours(table: Function, pc: int) -> tuple[str, dict[str, str]]:
    """A row in readelf's words."""
    row = call_frames.row_at(table, pc)
    frame = "exp" if isinstance(row.frame, bytes) else f"{call_frames.X86_64.names[row.frame[0]]}{row.frame[1]:+d}"
    words = {}
    for number, (kind, operand) in row.rules.items():
        name = "ra" if number == 16 else call_frames.X86_64.names.get(number, str(number))
        words[name] = WORDS[kind].format(call_frames.X86_64.names.get(operand) if kind == "register" else operand)
    return frame, words


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf is installed")
@pytest.mark.parametrize("name", [r"/libc\.so", r"/libm\.so", r"/libstdc\+\+\.so"])
def test_as_readelf_reads_them(name: str) -> None:
    ctypes.CDLL({"m": "libm.so.6", "s": "libstdc++.so.6"}.get(name[4], "libc.so.6"))
    path, base = mapped(name)
    headers = images.read_headers(ctypes.string_at, base)
    assert headers is not None
    assert headers.eh_frame_header is not None
    tables = UnwindTables(ctypes.string_at, headers.eh_frame_header)
    compared = 0
    for begin, end, rows in readelf_rows(path)[:MOST_FUNCTIONS]:
        table = tables.find(headers.bias + begin)
        assert table is not None
        assert (table.begin, table.end) == (headers.bias + begin, headers.bias + end)
        for address, frame, columns in rows:
            our_frame, our_rules = ours(table, headers.bias + address)
            assert our_frame == frame, f"{Path(path).name} {address:#x}"
            theirs = {column: rule for column, rule in columns.items() if rule != "u" or column in our_rules}
            assert our_rules == theirs, f"{Path(path).name} {address:#x}"
            compared += 1
    assert compared > 100
