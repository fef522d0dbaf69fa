"""Takes back what a killed gdb left in a process: the breakpoints that it sets for its own use.

While it attaches, gdb has a breakpoint in the dynamic loader for some thousandths of a second, to hear of libraries.
Nothing but the file tells which byte was there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace

from torchbench_dbg.trace import architecture
from torchbench_dbg.trace.probes import Mapping, read_mappings

# gdb's own breakpoints are in the loader, the C library and the C++ runtime (gdb/breakpoint.c, gdb/solib-svr4.c).
_LIBRARIES = ("ld-", "ld.", "libc.", "libc-", "libstdc++.", "libgcc_s.", "libpthread")


def remove_breakpoints(pid: int, addresses: Iterable[int] = ()) -> int:
    """Put the file's bytes back wherever a breakpoint instruction stands instead; how many there were.

    `addresses`: those that gdb was told to stop at. The process is not traced. What can't be read or written is left
    alone.
    """
    removed, wanted = 0, list(addresses)
    for mapping in read_mappings(pid):
        if "x" not in mapping.permissions or "w" in mapping.permissions:
            continue
        pages = {each & ~0xFFF for each in wanted if mapping.start <= each < mapping.end}
        parts = [
            replace(mapping, start=page, end=page + 0x1000, offset=page - mapping.start + mapping.offset)
            for page in pages
        ]
        if mapping.path.rpartition("/")[2].startswith(_LIBRARIES):
            parts = [mapping]
        for part in parts:
            with contextlib.suppress(OSError):
                removed += _restore(pid, part)
    return removed


def _restore(pid: int, mapping: Mapping) -> int:
    size = mapping.end - mapping.start
    with open(mapping.path, "rb") as file, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        file.seek(mapping.offset)
        original = file.read(size)
        memory.seek(mapping.start)
        current = memory.read(size)
        places = breakpoints_in(current, original, architecture.current().breakpoint)
        for place in places:
            memory.seek(mapping.start + place)
            memory.write(original[place : place + len(architecture.current().breakpoint)])
    return len(places)


def breakpoints_in(current: bytes, original: bytes, instruction: bytes) -> list[int]:
    """Where the breakpoint instruction stands in code, and not in the original of that code."""
    found, place = [], current.find(instruction)
    while 0 <= place < len(original):
        if original[place : place + len(instruction)] != instruction:
            found.append(place)
        place = current.find(instruction, place + 1)
    return found
