"""A reader for the few parts of an ELF file that tracing needs, fast enough for 386,000 symbols.

64-bit little-endian files (ELF-64 Object File Format; the System V ABI's AMD64 supplement; LSB for
.eh_frame_hdr). Whole tables are read as arrays of 64-bit words: a Python loop over each symbol's fields would
take seconds.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL_BYTES = 24
_WORD = (1 << 64) - 1
_PT_LOAD, _EXECUTABLE = 1, 1
_DT_NEEDED = 1
_STT_FUNC = 2
_SECTION_NOBITS = 8

Source = Literal["symtab", "dynsym", "eh_frame"]


class ElfError(ValueError):
    """Not an ELF file of the kind that is read here, or a damaged one."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A loaded, executable part: link-time address, place in the file, bytes in the file."""

    address: int
    offset: int
    file_size: int


@dataclass(frozen=True, slots=True)
class Section:
    """One section header, with its name."""

    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """Function symbols, one list a field: address, bytes, where the name begins in `strings`, and binding."""

    addresses: list[int]
    sizes: list[int]
    names: list[int]
    is_global: list[bool]
    strings: bytes


class ElfFile:
    """An open file. Use `opened`."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self._data = data
        try:
            self._read_headers()
        except (struct.error, OverflowError) as error:
            raise ElfError(f"damaged ELF file: {error}") from error

    def _read_headers(self) -> None:
        if self._data[:4] != b"\x7fELF" or self._data[4:6] != b"\x02\x01":
            raise ElfError("not a 64-bit little-endian ELF file")
        fields = _HEADER.unpack_from(self._data)
        (segments, sections), (segment_count, section_count, names) = fields[5:7], (fields[10], fields[12], fields[13])
        if (segment_count and fields[9] != _SEGMENT.size) or (section_count and fields[11] != _SECTION.size):
            raise ElfError("damaged ELF file: its headers have a size of their own")
        self.segment_headers = [
            _SEGMENT.unpack_from(self._data, segments + number * _SEGMENT.size) for number in range(segment_count)
        ]
        headers = [
            _SECTION.unpack_from(self._data, sections + number * _SECTION.size) for number in range(section_count)
        ]
        strings = self._slice(headers[names][4], headers[names][5]) if names < len(headers) else b""
        self.sections = [
            Section(_string(strings, header[0]), header[1], header[3], header[4], header[5], header[6])
            for header in headers
        ]

    def _slice(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise ElfError("damaged ELF file: it ends before its tables do")
        return self._data[offset : offset + size]

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def content(self, section: Section) -> bytes:
        return b"" if section.kind == _SECTION_NOBITS else self._slice(section.offset, section.size)

    @property
    def executable_segments(self) -> list[Segment]:
        return [
            Segment(address, offset, file_size)
            for kind, flags, offset, address, _, file_size, _, _ in self.segment_headers
            if kind == _PT_LOAD and flags & _EXECUTABLE
        ]

    @property
    def build_id(self) -> str | None:
        """The linker's build-id in hexadecimal digits."""
        section = self.section(".note.gnu.build-id")
        note = self.content(section) if section else b""
        if note[12:16] != b"GNU\0":
            return None
        size = int.from_bytes(note[4:8], "little")  # more notes may follow
        return note[16 : 16 + size].hex() or None

    @property
    def debug_link(self) -> str | None:
        """The name of the file that has the debug information which was stripped from this one."""
        section = self.section(".gnu_debuglink")
        return (_string(self.content(section), 0) or None) if section else None

    @property
    def has_dwarf(self) -> bool:
        return any(section.name in (".debug_info", ".zdebug_info") for section in self.sections)

    @property
    def needed_libraries(self) -> list[str]:
        """DT_NEEDED: what the dynamic loader loads for this file."""
        section, strings = self.section(".dynamic"), self.section(".dynstr")
        if not section or not strings:
            return []
        content, text = self.content(section), self.content(strings)
        entries = struct.iter_unpack("<QQ", content[: len(content) // 16 * 16])
        return [_string(text, value) for tag, value in entries if tag == _DT_NEEDED]

    def functions(self) -> tuple[SymbolTable, Source]:
        """Defined functions of `.symtab`; of `.dynsym` in a stripped file."""
        for name, source in ((".symtab", "symtab"), (".dynsym", "dynsym")):
            section = self.section(name)
            if section and section.size > _SYMBOL_BYTES and section.link < len(self.sections):
                table = self._functions(section)
                return table, "symtab" if source == "symtab" else "dynsym"
        return SymbolTable([], [], [], [], b""), "dynsym"

    def _functions(self, section: Section) -> SymbolTable:
        content = self.content(section)
        words = memoryview(content[: len(content) // _SYMBOL_BYTES * _SYMBOL_BYTES]).cast("Q")
        # Elf64_Sym: name u32, info u8, other u8, section u16 | value u64 | size u64
        heads, values, sizes = words[0::3].tolist(), words[1::3].tolist(), words[2::3].tolist()
        wanted = [
            number
            for number, head in enumerate(heads)
            if (head >> 32) & 0xF == _STT_FUNC and head >> 48 and values[number]
        ]
        return SymbolTable(
            addresses=[values[number] for number in wanted],
            sizes=[sizes[number] for number in wanted],
            names=[heads[number] & 0xFFFFFFFF for number in wanted],
            is_global=[bool((heads[number] >> 36) & 0xF) for number in wanted],
            strings=self.content(self.sections[section.link]),
        )

    def unwind_entries(self) -> list[int]:
        """Start of every function that has unwind information, sorted, from `.eh_frame_hdr`'s search table.

        Only the encoding that linkers write is read: 32-bit, relative to the section. [] for another.
        """
        section = self.section(".eh_frame_hdr")
        content = self.content(section) if section else b""
        if section is None or len(content) < 12:
            return []
        # Version 1; .eh_frame's place in four bytes; the count a u32; the table relative to this section in i32.
        version, frame_encoding, count_encoding, table_encoding = content[:4]
        if version != 1 or frame_encoding & 7 != 3 or (count_encoding, table_encoding) != (0x03, 0x3B):
            return []
        count = struct.unpack_from("<I", content, 8)[0]
        table = memoryview(content[12 : 12 + min(count, (len(content) - 12) // 8) * 8]).cast("i")
        return sorted({(section.address + start) & _WORD for start in table[0::2].tolist()})


@contextmanager
def opened(path: Path) -> Iterator[ElfFile]:
    """The ELF file at a path. OSError if it can't be read, ElfError if it is none."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except ValueError as error:
            raise ElfError("an empty file") from error
        with data:
            yield ElfFile(data)


def needed_libraries(path: Path) -> list[str]:
    """The libraries that a file is linked to."""
    with opened(path) as file:
        return file.needed_libraries


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode("utf-8", "replace")
