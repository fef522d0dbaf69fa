"""What is mapped into a process: which file lies where, what its ELF headers say, and its function names.

Nothing here imports gdb: the process's memory comes through a function `read(address, length) -> bytes`.
"""

from __future__ import annotations

import array
import bisect
import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

Read = Callable[[int, int], bytes]
MOST_SYMBOL_BYTES = 1 << 28
LONGEST_NAME = 1 << 16
MOST_LABELS = 64  # symbols that are no functions, between an address and its function
_LOAD, _EH_FRAME_HDR = 1, 0x6474E550
_SYMTAB, _DYNSYM = 2, 11
_FUNCTION_TYPES = (2, 10)  # STT_FUNC, STT_GNU_IFUNC


class Mapping(NamedTuple):
    """One line of /proc/PID/maps."""

    start: int
    end: int
    executable: bool
    offset: int
    path: str  # empty for anonymous memory


def parse_mappings(lines: Iterable[str]) -> list[Mapping]:
    """The lines of /proc/PID/maps, in order of address."""
    found = []
    for line in lines:
        parts = line.rstrip("\n").split(None, 5)
        if len(parts) < 5:
            continue
        start, _, end = parts[0].partition("-")
        path = parts[5] if len(parts) > 5 else ""
        found.append(Mapping(int(start, 16), int(end, 16), "x" in parts[1], int(parts[2], 16), path))
    return found


class Headers(NamedTuple):
    """Of an ELF file in memory: what to add to its addresses, and where its search table for unwinding lies."""

    bias: int
    eh_frame_header: int | None


def read_headers(read: Read, base: int) -> Headers | None:
    """The headers of the file that is mapped at `base` (its first byte); None if that is no 64-bit ELF file."""
    head = read(base, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        return None
    (program_headers,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    bias = unwind = None
    if size != 56:
        return None
    table = read(base + program_headers, 56 * count)
    for at in range(0, 56 * count, 56):
        kind, _, offset, address = struct.unpack_from("<IIQQ", table, at)
        if kind == _LOAD and bias is None:
            bias = base + offset - address
        elif kind == _EH_FRAME_HDR:
            unwind = address
    if bias is None:
        return None
    return Headers(bias, None if unwind is None else bias + unwind)


class Sections(NamedTuple):
    """Of an ELF file on disk: the sizes that tell how much a debugger would have to read."""

    symbol_bytes: int
    debug_information_bytes: int
    symbols: tuple  # (offset, size, offset of the names) or empty


def read_sections(path: str) -> Sections:
    """The facts about a file's symbols and debug information. OSError or ValueError if it can't be read."""
    with open(path, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit ELF file")
        (headers,) = struct.unpack_from("<Q", head, 40)
        size, count, of_names = struct.unpack_from("<HHH", head, 58)
        if size != 64:
            raise ValueError("no section headers")
        file.seek(headers)
        table = [struct.unpack("<IIQQQQIIQQ", file.read(64)) for _ in range(count)]
        names = _section(file, table[of_names][4], table[of_names][5])
    debug = 0
    symbols = {}
    for section in table:
        name = names[section[0] : names.find(b"\0", section[0])]
        if name in (b".debug_info", b".zdebug_info"):
            debug = section[5]
        elif section[1] in (_SYMTAB, _DYNSYM) and section[6] < count:
            strings = table[section[6]]
            symbols[section[1]] = (section[4], section[5], strings[4])
    return Sections(sum(each[1] for each in symbols.values()), debug, symbols.get(_SYMTAB) or symbols.get(_DYNSYM, ()))


def _section(file, offset: int, size: int) -> bytes:  # type: ignore[no-untyped-def]
    if size > MOST_SYMBOL_BYTES:
        raise ValueError("section of %d bytes" % size)
    file.seek(offset)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("cut off")
    return data


class Symbols:
    """The functions of a file by their addresses in it: .symtab, else .dynsym; none if it can't be read."""

    def __init__(self, path: str) -> None:
        self._path, self._names = path, 0
        self._entries = array.array("Q")  # of three words: name, type and section; value; size
        try:
            place = read_sections(path).symbols
            if place:
                with open(path, "rb") as file:
                    self._entries.frombytes(_section(file, place[0], place[1] // 24 * 24))
                self._names = place[2]
        except (OSError, ValueError, IndexError, struct.error):
            pass
        self._starts = self._entries[1::3]
        self._raw_starts = self._starts.tobytes()
        self._sorted = array.array("Q")  # made when it is needed

    def at(self, start: int) -> str | None:
        """The mangled name of the function that begins there."""
        place = self._place(start)
        return None if place is None else self._name(place)

    def before(self, address: int) -> tuple[int, str] | None:
        """(start, mangled name) of the function that contains the address, by the sizes in the symbol table."""
        if not self._sorted:
            self._sorted = array.array("Q", sorted(self._starts))
        end = bisect.bisect_right(self._sorted, address)
        for start in reversed(self._sorted[max(0, end - MOST_LABELS) : end]):
            place = self._place(start)
            if place is not None:
                size = self._entries[3 * place + 2]
                return (start, self._name(place)) if size == 0 or address < start + size else None
        return None

    def _place(self, start: int) -> int | None:
        wanted, at = start.to_bytes(8, "little"), -1
        while (at := self._raw_starts.find(wanted, at + 1)) >= 0:  # ten times as fast as array.index
            if at % 8 == 0 and self._is_function(at // 8):
                return at // 8
        return None

    def _is_function(self, place: int) -> bool:
        word = self._entries[3 * place]
        return (word >> 32) & 0xF in _FUNCTION_TYPES and word >> 48 != 0

    def _name(self, place: int) -> str:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._names + (self._entries[3 * place] & 0xFFFFFFFF))
                return file.read(LONGEST_NAME).partition(b"\0")[0].decode("utf-8", "replace")
        except OSError:
            return ""
