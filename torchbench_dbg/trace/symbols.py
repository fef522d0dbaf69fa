"""The functions of a library, sorted by address: made once, then read from the cache in a few milliseconds.

The cache file holds addresses, sizes, categories and where each name begins; the names themselves stay in the
library's own string table, which is mapped. Its name is the library's build-id.
"""

from __future__ import annotations

import array
import bisect
import contextlib
import functools
import hashlib
import itertools
import json
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchbench_dbg.trace import classify, elf
from torchbench_dbg.trace.classify import Category, categorize

__all__ = ["Category", "SymbolIndex", "load_index"]

_MAGIC = b"tdbgidx4"
_HEADER = struct.Struct("<8sII")  # magic, bytes of the description, CRC-32 of description and tables
_NO_NAME = 0xFFFFFFFF
_SMALL_LIBRARY = 20_000  # functions


@dataclass(slots=True, kw_only=True)
class SymbolIndex:
    """Functions of one library. Numbers are positions in the sorted tables; addresses are link-time ones.

    `source` says where the starts are from: `eh_frame` means a stripped library, where only exported functions
    have names. `starts` are bytes from 0, `sizes` bytes of code.
    """

    path: Path
    build_id: str | None
    source: elf.Source
    has_dwarf: bool
    segments: list[elf.Segment]
    starts: memoryview
    sizes: memoryview
    categories: memoryview
    name_offsets: memoryview
    strings_offset: int
    strings_size: int
    _library: mmap.mmap | None = field(default=None, repr=False)
    _name_order: list[int] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.starts)

    def is_named(self, number: int) -> bool:
        return bool(self.name_offsets[number] != _NO_NAME)

    def name(self, number: int) -> str:
        """The mangled name, "" for a function without one."""
        offset = self.name_offsets[number]
        if offset == _NO_NAME:
            return ""
        library, end = self._mapped(), self.strings_offset + self.strings_size
        begin = self.strings_offset + offset
        stop = library.find(b"\0", begin, end)
        return library[begin : stop if stop >= 0 else end].decode("utf-8", "replace")

    def find(self, address: int) -> int | None:
        """The function that contains an address."""
        number = bisect.bisect_right(self.starts, address) - 1
        if number < 0 or address >= self.starts[number] + max(1, self.sizes[number]):
            return None
        return number

    def slice(self, low: int, high: int) -> range:
        """The functions that begin in [low, high)."""
        return range(bisect.bisect_left(self.starts, low), bisect.bisect_left(self.starts, high))

    def neighbour(self, number: int) -> str:
        """The mangled name of the nearest named function before one."""
        for before in range(number - 1, max(-1, number - 4096), -1):
            if self.name_offsets[before] != _NO_NAME:
                return self.name(before)
        return ""

    def candidates(self, text: str) -> list[int]:
        """The functions whose mangled name contains the text."""
        needle, library = text.encode("utf-8", "replace"), self._mapped()
        order, offsets = self._by_name_offset(), self.name_offsets
        found: set[int] = set()
        position, end = self.strings_offset, self.strings_offset + self.strings_size
        while needle and (position := library.find(needle, position, end)) >= 0:
            # A string table may let one name be the tail of another: every name that begins in this string,
            # not after the last place of the text in it, contains the text.
            stop = library.find(b"\0", position, end)
            stop = stop if stop >= 0 else end
            first = library.rfind(b"\0", self.strings_offset, position) + 1 - self.strings_offset
            last = library.rfind(needle, position, stop) - self.strings_offset
            low = bisect.bisect_left(order, max(0, first), key=offsets.__getitem__)
            while low < len(order) and offsets[order[low]] <= last:
                found.add(order[low])
                low += 1
            position = stop
        return sorted(found)

    def _by_name_offset(self) -> list[int]:
        """The named functions in the order of their names' places in the string table. Made when first needed."""
        if self._name_order is None:
            offsets = self.name_offsets.tolist()
            named = (number for number, offset in enumerate(offsets) if offset != _NO_NAME)
            self._name_order = sorted(named, key=offsets.__getitem__)
        return self._name_order

    def _mapped(self) -> mmap.mmap:
        if self._library is None:
            with self.path.open("rb") as file:
                self._library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        return self._library


def load_index(path: Path, cache_directory: Path | None, *, on_warning: Callable[[str], None]) -> SymbolIndex:
    """The index of a library, from the cache if it is there, else made and put there.

    OSError or elf.ElfError if the library can't be read. A cache that is damaged or can't be written costs time
    and a warning, nothing else.
    """
    with elf.opened(path) as file:
        build_id = file.build_id
        cached = cache_directory / "symbols" / f"{_key(path, build_id)}.idx" if cache_directory else None
        if cached is not None and (index := _read(cached, path, on_warning)) is not None:
            return index
        description, tables = _build(file)
    if cached is not None:
        _write(cached, description, tables, on_warning)
    return _open(path, description, memoryview(b"".join(tables)))


def cached_index(path: Path, cache_directory: Path) -> SymbolIndex | None:
    """The index of a library if it is in the cache; it is not made."""
    try:
        with elf.opened(path) as file:
            build_id = file.build_id
        return _read(cache_directory / "symbols" / f"{_key(path, build_id)}.idx", path, lambda _warning: None)
    except (OSError, elf.ElfError):
        return None


def _key(path: Path, build_id: str | None) -> str:
    status = path.stat()
    text = f"{_MAGIC!r} {_rules_checksum()} {build_id or path} {status.st_size} {status.st_mtime_ns}"
    return f"{(build_id or 'file')[:16]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@functools.lru_cache(maxsize=1)
def _rules_checksum() -> int:
    """Changes with the rules of `classify`, so that no index keeps categories of an older tdbg."""
    source = Path(classify.__file__)
    return zlib.crc32(source.read_bytes()) if source.is_file() else 0


def _build(file: elf.ElfFile) -> tuple[dict[str, Any], list[bytes]]:
    table, source = file.functions()
    best = _best_symbols(table)
    unnamed: list[int] = []
    if source == "dynsym" and (entries := file.unwind_entries()):
        text = file.section(".text")
        low, high = (text.address, text.address + text.size) if text else (0, 0)
        unnamed = [start for start in entries if start not in best and low <= start < high]
        source = "eh_frame"
    starts = sorted([*best, *unnamed])
    # Plain C names in torch's big library are those of other projects; in an extension they are its own.
    small = len(starts) < _SMALL_LIBRARY
    strings, names, sizes, categories = table.strings, array.array("I"), array.array("I"), bytearray()
    for position, start in enumerate(starts):
        number = best.get(start)
        if number is None:
            following = starts[position + 1] if position + 1 < len(starts) else start + 1
            names.append(_NO_NAME)
            sizes.append(min(following - start, 0xFFFFFFFF))
            categories.append(Category.CORE)
        else:
            offset = table.names[number]
            names.append(offset)
            sizes.append(min(table.sizes[number], 0xFFFFFFFF))
            name = strings[offset : strings.find(b"\0", offset)]
            categories.append(categorize(name, plain_names_are_core=small))
    section = _string_section(file, source)
    description = {
        "count": len(starts),
        "build_id": file.build_id,
        "source": source,
        "has_dwarf": file.has_dwarf,
        "segments": [[each.address, each.offset, each.file_size] for each in file.executable_segments],
        "strings": [section.offset, section.size] if section else [0, 0],
    }
    return description, [array.array("Q", starts).tobytes(), names.tobytes(), sizes.tobytes(), bytes(categories)]


def _string_section(file: elf.ElfFile, source: elf.Source) -> elf.Section | None:
    return file.section(".strtab" if source == "symtab" else ".dynstr")


def _best_symbols(table: elf.SymbolTable) -> dict[int, int]:
    """For each address the symbol to call it by."""
    best: dict[int, int] = {}
    for number, address in enumerate(table.addresses):
        other = best.setdefault(address, number)
        if other != number and _readability(table, number) < _readability(table, other):
            best[address] = number
    return best


def _readability(table: elf.SymbolTable, number: int) -> tuple[bool, bool, bool, bool, int, bytes]:
    """The symbol with the smallest one is the name to show: global, no compiler's clone, then the shorter.

    MKL calls one function SGEMM, sgemm and sgemm_: the last is what callers in C and C++ write. The order of
    letters puts constructors C1 before C2.
    """
    offset, strings = table.names[number], table.strings
    name = strings[offset : strings.find(b"\0", offset)]
    is_fortran = name.endswith(b"_") and not name.startswith(b"_Z")
    return not table.is_global[number], b"." in name, name.isupper(), not is_fortran, len(name), name


def _open(path: Path, description: dict[str, Any], tables: memoryview) -> SymbolIndex:
    count = description["count"]
    bounds = [0, 8 * count, 12 * count, 16 * count, 17 * count]
    starts, names, sizes, categories = (tables[low:high] for low, high in itertools.pairwise(bounds))
    return SymbolIndex(
        path=path,
        build_id=description["build_id"],
        source=description["source"],
        has_dwarf=description["has_dwarf"],
        segments=[elf.Segment(*fields) for fields in description["segments"]],
        starts=starts.cast("Q"),
        sizes=sizes.cast("I"),
        categories=categories,
        name_offsets=names.cast("I"),
        strings_offset=description["strings"][0],
        strings_size=description["strings"][1],
    )


def _read(cached: Path, path: Path, on_warning: Callable[[str], None]) -> SymbolIndex | None:
    try:
        with cached.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    except OSError:
        return None  # there is none; where it can't be read, writing it anew tells why
    except ValueError:
        data = memoryview(b"")
    try:
        magic, length, checksum = _HEADER.unpack_from(data)
        if magic != _MAGIC or zlib.crc32(data[_HEADER.size :]) != checksum:
            raise ValueError("its checksum is wrong")
        description = json.loads(bytes(data[_HEADER.size : _HEADER.size + length]))
        tables = data[_HEADER.size + length :]
        if len(tables) != 17 * description["count"]:
            raise ValueError("its length is wrong")
        return _open(path, description, tables)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        on_warning(f"the symbol cache {cached} is damaged ({error}); it is made anew.")
        return None


def _write(cached: Path, description: dict[str, Any], tables: list[bytes], on_warning: Callable[[str], None]) -> None:
    text = json.dumps(description).encode()
    text += b" " * (-(_HEADER.size + len(text)) % 8)  # the tables of words begin at a multiple of eight
    checksum = 0
    for part in (text, *tables):
        checksum = zlib.crc32(part, checksum)
    temporary = None
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=cached.parent, prefix=".new-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEADER.pack(_MAGIC, len(text), checksum))
            for part in (text, *tables):
                file.write(part)
        os.replace(temporary, cached)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        on_warning(
            f"the symbol cache can't be written to {cached.parent} ({error.strerror}); "
            "each trace reads the symbols anew. TDBG_CACHE_DIR chooses another place."
        )
