"""What is mapped into a process, read from this very process."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import tdbg_images as images

LIBC = ctypes.CDLL(None)


def address_of(name: str) -> int:
    return ctypes.cast(getattr(LIBC, name), ctypes.c_void_p).value or 0


def mapping_of(address: int) -> images.Mapping:
    with open("/proc/self/maps") as lines:
        return next(each for each in images.parse_mappings(lines) if each.start <= address < each.end)


def base_of(path: str) -> int:
    with open("/proc/self/maps") as lines:
        return next(each.start for each in images.parse_mappings(lines) if each.path == path)


def test_mappings() -> None:
    text = """\
55e672844000-55e672845000 r--p 00000000 fe:00 1                          /usr/bin/python3.11
55e672845000-55e672846000 r-xp 00001000 fe:00 1                          /usr/bin/with a space (deleted)
7ffeae578000-7ffeae599000 rw-p 00000000 00:00 0
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
broken
"""
    found = images.parse_mappings(text.splitlines())
    assert [(each.executable, each.offset, each.path) for each in found] == [
        (False, 0, "/usr/bin/python3.11"),
        (True, 0x1000, "/usr/bin/with a space (deleted)"),
        (False, 0, ""),
        (True, 0, "[vsyscall]"),
    ]


def test_functions_of_the_c_library_are_found_by_their_addresses() -> None:
    address = address_of("qsort")
    path = mapping_of(address).path
    headers = images.read_headers(ctypes.string_at, base_of(path))
    assert headers is not None
    assert headers.eh_frame_header is not None
    symbols = images.Symbols(path)
    start = address - headers.bias
    assert symbols.at(start) == "qsort"
    assert symbols.before(start + 3) == (start, "qsort")
    assert symbols.at(start + 1) is None
    assert symbols.before(0) is None
    assert images.read_sections(path).symbol_bytes > 0


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library at all" * 10, b"\x7fELF\x02\x01" + bytes(58)])
def test_no_library_no_symbols(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    symbols = images.Symbols(str(tmp_path / "file"))
    assert (symbols.at(0), symbols.before(99)) == (None, None)
    assert images.Symbols(str(tmp_path / "missing")).at(0) is None


def test_a_library_that_was_cut_has_no_symbols(tmp_path: Path) -> None:
    whole = Path(mapping_of(address_of("qsort")).path).read_bytes()
    for length in (64, 1000, len(whole) // 2, len(whole) - 100):
        (tmp_path / "cut").write_bytes(whole[:length])
        assert images.Symbols(str(tmp_path / "cut")).at(1) is None


def test_headers_of_what_is_no_library() -> None:
    assert images.read_headers(lambda address, length: bytes(length), 0x1000) is None
