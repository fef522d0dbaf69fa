"""Native stacks without a debugger: by the unwind tables in memory, names from the symbol tables on disk."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torchbench_dbg.crash.snapshot import AddressMap, Snapshot, ThreadState, Unreadable
from torchbench_dbg.paths import cache_directory, import_from_gdbinit
from torchbench_dbg.trace.names import demangle
from torchbench_dbg.trace.symbols import SymbolIndex, cached_index

_call_frames: Any = import_from_gdbinit("tdbg_call_frames")
_images: Any = import_from_gdbinit("tdbg_images")
_prologue: Any = import_from_gdbinit("tdbg_prologue")
_tables: Any = import_from_gdbinit("tdbg_unwind_tables")

MOST_FRAMES = 200
_MACHINE = _call_frames.X86_64
_BROKEN = (_tables.Unsupported, KeyError, struct.error, OverflowError, IndexError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFrame:
    """A native frame. `function` is demangled; `guessed`: there was no unwind table for the frame that it called."""

    pc: int
    function: str | None
    library: str | None
    offset: int | None  # in the library, as its own symbol table counts
    guessed: bool = False


class _Image:
    """A file that is mapped: where it lies, its unwind tables, its symbols."""

    def __init__(self, path: str, base: int, read: Any) -> None:
        self.path = path
        self.bias: int | None = None
        self.tables: Any = None
        self._symbols: Any = None
        self._cached: SymbolIndex | Literal[False] | None = False  # False: not looked for yet
        try:
            headers = _images.read_headers(read, base)
            if headers is not None:
                self.bias = headers.bias
                if headers.eh_frame_header is not None:
                    self.tables = _tables.UnwindTables(read, headers.eh_frame_header)
        except _BROKEN:
            pass

    def table(self, pc: int) -> Any:
        try:
            return self.tables.find(pc) if self.tables is not None else None
        except _BROKEN:
            return None

    def function(self, pc: int) -> tuple[int, str] | None:
        """(start, mangled name) of the function around an address."""
        if self.bias is None:
            return None
        index = self._index()
        if index is not None:
            number = index.find(pc - self.bias)
            return (index.starts[number] + self.bias, index.name(number)) if number is not None else None
        if self._symbols is None:
            self._symbols = _images.Symbols(self.path)
        table = self.table(pc)
        if table is not None and (name := self._symbols.at(table.begin - self.bias)):
            return table.begin, name
        found = self._symbols.before(pc - self.bias)
        return (found[0] + self.bias, found[1]) if found else None

    def _index(self) -> SymbolIndex | None:
        """tdbg's own index, where it has one of the library (torch's large ones): found in it in no time."""
        if self._cached is False:
            self._cached = cached_index(Path(self.path), cache_directory()) if "torch" in self.path else None
        return self._cached


class Unwinder:
    """Walks the stacks of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._read = snapshot.read
        self.map = AddressMap(snapshot.mappings)
        self._known: dict[str, _Image] = {}

    def frames(self, thread: ThreadState, limit: int = MOST_FRAMES) -> Iterator[RawFrame]:
        """The innermost frame first, as far as they can be believed."""
        registers = {number: thread.registers[name] for number, name in _MACHINE.names.items()}
        interrupted, guessed, lowest = True, False, 0
        for _ in range(limit):
            pc = registers[_MACHINE.return_address]
            yield self.describe(pc, inside=pc if interrupted else pc - 1, guessed=guessed)
            try:
                caller, interrupted, guessed = self._caller(registers, interrupted)
            except _BROKEN:
                return
            if caller is None or caller.frame_address <= lowest or not caller.registers.get(_MACHINE.return_address):
                return
            lowest = 0 if interrupted else caller.frame_address  # a handler may have a stack of its own
            registers = caller.registers

    def describe(self, pc: int, *, inside: int, guessed: bool) -> RawFrame:
        image = self._image(pc)
        found = image.function(inside) if image else None
        mapping = self.map.at(pc)
        return RawFrame(
            pc=pc,
            function=demangle(found[1]) if found else None,
            library=image.path if image else mapping.path if mapping and mapping.path else None,
            offset=pc - image.bias if image and image.bias is not None else None,
            guessed=guessed,
        )

    def _image(self, address: int) -> _Image | None:
        mapping = self.map.at(address)
        if mapping is None or not mapping.path.startswith(("/", "[vdso]")):
            return None
        if mapping.path not in self._known:
            self._known[mapping.path] = _Image(mapping.path, self.map.of_file(mapping.path), self._read)
        return self._known[mapping.path]

    def _caller(self, registers: dict[int, int], interrupted: bool) -> tuple[Any, bool, bool]:
        """(caller, whether a signal interrupted it, whether it is guessed)."""
        pc = registers[_MACHINE.return_address]
        if not self.map.is_code(pc):  # a call through a wild pointer: its return address was just pushed
            return self._believable(_prologue.caller_by_prologue(pc, pc, registers, self._read)), False, True
        inside, image = (pc if interrupted else pc - 1), self._image(pc)
        table = (image.table(inside) or image.table(pc)) if image else None
        if table is not None:
            return (
                _call_frames.caller(table, inside, registers, self._read, _MACHINE),
                bool(table.of_signal),
                False,
            )
        found = image.function(inside) if image else None
        if found is not None:
            caller = self._believable(_prologue.caller_by_prologue(found[0], pc, registers, self._read))
            if caller is not None:
                return caller, False, True
        return _prologue.caller_by_search(pc, registers, self._read, self.map.is_code, self._near(pc)), False, True

    def _believable(self, caller: Any) -> Any:
        back = caller.registers[_MACHINE.return_address]
        try:
            good = self.map.is_code(back) and _prologue.follows_call(self._read(back - 7, 7))
        except Unreadable:
            good = False
        return caller if good else None

    def _near(self, pc: int) -> Any:
        here = self.map.at(pc)

        def near(target: int) -> bool:
            there = self.map.at(target)
            return there is not None and here is not None and (there is here or (there.path == here.path != ""))

        return near
