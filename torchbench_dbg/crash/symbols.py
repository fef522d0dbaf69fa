"""Where a variable of a loaded library lies: `_PyRuntime`, `__abort_msg`."""

from __future__ import annotations

import struct
from pathlib import Path

from torchbench_dbg.crash.snapshot import AddressMap, Snapshot
from torchbench_dbg.paths import import_from_gdbinit
from torchbench_dbg.trace import elf

_SYMBOL = struct.Struct("<IBBHQQ")


def address_of(snapshot: Snapshot, path: str, name: str) -> int | None:
    """The address in the process of a symbol of a file that is mapped there; None if the file has it not."""
    value = value_in_file(path, name)
    if value is None:
        return None
    headers = import_from_gdbinit("tdbg_images").read_headers(
        snapshot.read, AddressMap(snapshot.mappings).of_file(path)
    )
    return headers.bias + value if headers is not None else None


def value_in_file(path: str, name: str) -> int | None:
    """The symbol's link-time address, by .dynsym, else .symtab."""
    try:
        with elf.opened(Path(path)) as file:
            for table in (file.section(".dynsym"), file.section(".symtab")):
                if table is None or table.link >= len(file.sections):
                    continue
                strings, entries = file.content(file.sections[table.link]), file.content(table)
                if (value := _find(entries, strings, name.encode() + b"\0")) is not None:
                    return value
    except (OSError, elf.ElfError):
        pass
    return None


def _find(entries: bytes, strings: bytes, name: bytes) -> int | None:
    places, at = set(), strings.find(name)  # a linker may put a name into the end of a longer one
    while at >= 0:
        places.add(at)
        at = strings.find(name, at + 1)
    if places:
        for place, _, _, section, value, _ in _SYMBOL.iter_unpack(entries[: len(entries) // 24 * 24]):
            if place in places and section:
                return int(value)
    return None
