"""Entry probes: breakpoint instructions at function entries, planted only where the program really goes.

Planting all 300 MB of libtorch_cpu costs a third of a second and as much private memory. So nothing is planted
at first: the library's text is made non-executable, and the first execution of a chunk faults. Then that chunk
alone gets its breakpoints and its execute permission back. `a + b` touches some sixty chunks of five thousand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg.errors import PtraceForbidden
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.symbols import SymbolIndex

CHUNK = 1 << 16  # bytes; a multiple of the page size
_PROT_READ, _PROT_READ_EXEC = 1, 5

SetProtection = Callable[[int, int, int], None]
"""Runs mprotect(address, length, protection) inside the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One line of /proc/PID/maps."""

    start: int
    end: int
    permissions: str
    offset: int
    path: str


def read_mappings(pid: int) -> list[Mapping]:
    """The process's memory map; empty when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []
    mappings = []
    for line in lines:
        span, permissions, offset, _device, _inode, *path = line.split(maxsplit=5)
        start, _, end = span.partition("-")
        mappings.append(
            Mapping(
                start=int(start, 16),
                end=int(end, 16),
                permissions=permissions,
                offset=int(offset, 16),
                path=path[0] if path else "",
            )
        )
    return mappings


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One executable mapping of an indexed library. `bias` + link-time address = address in the process."""

    start: int
    end: int
    bias: int
    library: int  # number of the library in the record
    index: SymbolIndex

    def chunk(self, address: int) -> tuple[int, int]:
        """Bounds of the chunk that contains the address."""
        start = self.start + (address - self.start) // CHUNK * CHUNK
        return start, min(start + CHUNK, self.end)


def regions_of(mappings: Iterable[Mapping], indexes: dict[str, tuple[int, SymbolIndex]]) -> list[Region]:
    """Executable mappings of the libraries in `indexes` (real path -> number, index)."""
    return list(_regions(mappings, indexes))


def _regions(mappings: Iterable[Mapping], indexes: dict[str, tuple[int, SymbolIndex]]) -> Iterator[Region]:
    for mapping in mappings:
        if "x" not in mapping.permissions or mapping.path not in indexes:
            continue
        library, index = indexes[mapping.path]
        for segment in index.segments:
            page = segment.offset & ~0xFFF
            if page <= mapping.offset < segment.offset + segment.file_size:
                bias = mapping.start - mapping.offset - (segment.address - segment.offset)
                yield Region(start=mapping.start, end=mapping.end, bias=bias, library=library, index=index)
                break


@dataclass(slots=True)
class Probe:
    """A planted function entry and how often it was hit."""

    address: int
    region: Region
    symbol: int  # number in the library's index
    original: bytes  # the function's first bytes
    armed: bool = True
    hits: int = 0
    is_named: bool = True
    takes_keys: bool | None = None  # whether a DispatchKeySet is among its arguments; None: not asked yet
    takes_kernel: bool = False  # whether an OperatorKernel* comes before it


@dataclass(slots=True)
class ExitProbe:
    """A planted return address, and the (thread, stack pointer) of each call that waits to return there."""

    address: int
    original: bytes
    waiting: list[tuple[int, int, int]]  # thread, stack pointer after the return, order of the entry


class ProbeSet:
    """The probes of one process: guard, plant on demand, take back."""

    def __init__(
        self,
        pid: int,
        *,
        architecture: Architecture,
        categories: frozenset[int],
    ) -> None:
        self.regions: list[Region] = []
        self._code: list[tuple[int, int]] = []
        self.probes: dict[int, Probe] = {}
        self.exits: dict[int, ExitProbe] = {}
        self._categories = categories
        self._breakpoint = architecture.breakpoint
        self._originals: dict[int, bytes] = {}
        self._guarded = False
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)

    def watch(self, regions: Iterable[Region], mappings: Iterable[Mapping]) -> None:
        """The regions to guard, among all mappings of the process; before `guard`."""
        self.regions = sorted(regions, key=lambda region: region.start)
        self._code = [(each.start, each.end) for each in mappings if "x" in each.permissions]

    def _is_code(self, address: int) -> bool:
        return any(start <= address < end for start, end in self._code)

    def close(self) -> None:
        os.close(self._memory)

    def read(self, address: int, length: int) -> bytes:
        """Memory of the process; b"" where nothing is mapped."""
        try:
            return os.pread(self._memory, length, address)
        except (OSError, OverflowError):
            return b""

    def write(self, address: int, data: bytes) -> None:
        os.pwrite(self._memory, data, address)

    def region_at(self, address: int) -> Region | None:
        for region in self.regions:
            if region.start <= address < region.end:
                return region
        return None

    def function_around(self, address: int) -> int:
        """Where the function that contains an address begins, in the process; 0 outside the watched libraries."""
        region = self.region_at(address)
        if region is None:
            return 0
        symbol = region.index.find(address - region.bias)
        return region.index.starts[symbol] + region.bias if symbol is not None else 0

    def guard(self, protect: SetProtection) -> None:
        """Make every region non-executable: from now on first executions fault."""
        for region in self.regions:
            protect(region.start, region.end - region.start, _PROT_READ)
        self._guarded = True

    def is_guard_fault(self, address: int) -> bool:
        """Whether executing this address faulted because of `guard` (also when a neighbour thread was quicker)."""
        return self._guarded and self.region_at(address) is not None

    def plant(self, address: int, protect: SetProtection) -> None:
        """Plant the chunk around a faulting address and let it execute."""
        region = self.region_at(address)
        if region is None:
            return
        start, end = region.chunk(address)
        if start in self._originals:
            return
        original = self.read(start, end - start)
        self._originals[start] = original
        patched = bytearray(original)
        index, bias = region.index, region.bias
        starts, categories, wanted = index.starts, index.categories, self._categories
        for symbol in index.slice(start - bias, end - bias):
            if categories[symbol] not in wanted:
                continue
            entry = starts[symbol] + bias
            offset = entry - start
            self.probes[entry] = Probe(
                address=entry,
                region=region,
                symbol=symbol,
                original=original[offset : offset + 4],
                is_named=index.is_named(symbol),
            )
            patched[offset : offset + len(self._breakpoint)] = self._breakpoint
        try:
            self.write(start, bytes(patched))
        except OSError as error:
            raise PtraceForbidden(
                f"the kernel does not let tdbg write into the traced program's code: {error.strerror}.",
                hint="the kernel parameter proc_mem.force_override must not be 'never'",
                docs="docs/how-to/ptrace.md",
            ) from error
        protect(start, end - start, _PROT_READ_EXEC)

    def lift(self, probe: Probe) -> None:
        """Put the function's own first byte back."""
        self.write(probe.address, probe.original[: len(self._breakpoint)])

    def replant(self, probe: Probe) -> None:
        if probe.armed:
            self.write(probe.address, self._breakpoint)

    def disarm(self, probe: Probe) -> None:
        """Take one probe back for good."""
        probe.armed = False
        self.lift(probe)

    def await_exit(self, address: int, *, tid: int, stack_pointer: int, order: int) -> None:
        """Plant a return address outside the probed libraries, to see when Python gets control back."""
        if address in self.probes or self.region_at(address) is not None or not self._is_code(address):
            return
        probe = self.exits.get(address)
        if probe is None:
            original = self.read(address, len(self._breakpoint))
            if len(original) < len(self._breakpoint):
                return
            probe = self.exits[address] = ExitProbe(address=address, original=original, waiting=[])
        if not probe.waiting:
            self.write(address, self._breakpoint)
        probe.waiting.append((tid, stack_pointer, order))

    def leave(self, probe: ExitProbe, *, tid: int, stack_pointer: int) -> int | None:
        """Order of the entry that returns here now; None if it is another call's return."""
        mine = [wait for wait in probe.waiting if wait[0] == tid and wait[1] <= stack_pointer]
        arrived = next((order for _, pointer, order in mine if pointer == stack_pointer), None)
        probe.waiting = [wait for wait in probe.waiting if wait not in mine]
        return arrived

    def lift_exit(self, probe: ExitProbe) -> None:
        self.write(probe.address, probe.original)

    def replant_exit(self, probe: ExitProbe) -> None:
        if probe.waiting:
            self.write(probe.address, self._breakpoint)

    def remove_all(self, protect: SetProtection) -> None:
        """Every byte and every permission as before. Safe while other threads run."""
        for start, original in self._originals.items():
            self.write(start, original)
        for exit_probe in self.exits.values():
            self.write(exit_probe.address, exit_probe.original)
            exit_probe.waiting.clear()
        for region in self.regions:
            protect(region.start, region.end - region.start, _PROT_READ_EXEC)
        self._originals.clear()
        for probe in self.probes.values():
            probe.armed = False
        self._guarded = False

    def clean_copy(self, pid: int, protect: SetProtection) -> None:
        """The same in a forked child, which has its own copy of the planted pages."""
        memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            for start, original in self._originals.items():
                os.pwrite(memory, original, start)
            for exit_probe in self.exits.values():
                os.pwrite(memory, exit_probe.original, exit_probe.address)
        finally:
            os.close(memory)
        for region in self.regions:
            protect(region.start, region.end - region.start, _PROT_READ_EXEC)
