"""A process at one moment: its threads, what is mapped, its memory. Live (stopped), or out of a core file."""

from __future__ import annotations

import bisect
import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torchbench_dbg.paths import import_from_gdbinit
from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.probes import Mapping, read_mappings

Unreadable: Any = import_from_gdbinit("tdbg_unwind_tables").Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """A thread's registers by the names of `struct user_regs_struct`; `native_id` is the kernel's number of it."""

    native_id: int
    name: str
    registers: MappingType[str, int]


class Snapshot(Protocol):
    """What the reading of stacks needs."""

    @property
    def pid(self) -> int: ...

    @property
    def threads(self) -> Sequence[ThreadState]: ...

    @property
    def mappings(self) -> Sequence[Mapping]:
        """In order of address."""

    def read(self, address: int, length: int) -> bytes:
        """Exactly so many bytes; Unreadable where they are not there."""


class LiveProcess:
    """A process whose threads all stand still under ptrace. `close` it."""

    def __init__(self, pid: int, architecture: Architecture) -> None:
        self.pid = pid
        self.mappings = read_mappings(pid)
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        registers = ptrace.Registers(architecture)
        self.threads = []
        for tid in ptrace.threads(pid):
            try:
                block = registers.read(tid)
            except ptrace.TraceeGone:
                continue
            values = {name: int(getattr(block, name)) for name, *_ in block._fields_}
            self.threads.append(ThreadState(native_id=tid, name=procfs.thread_name(pid, tid), registers=values))

    def read(self, address: int, length: int) -> bytes:
        try:
            data = os.pread(self._memory, length, address)
        except (OSError, OverflowError) as error:
            raise Unreadable(f"{address:#x}") from error
        if len(data) < length:
            raise Unreadable(f"{address:#x}")
        return data

    def close(self) -> None:
        os.close(self._memory)


class AddressMap:
    """Finds the mapping of an address, and its neighbours."""

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self.mappings = mappings
        self._starts = [mapping.start for mapping in mappings]

    def at(self, address: int) -> Mapping | None:
        below = self.below(address)
        return below if below is not None and address < below.end else None

    def below(self, address: int) -> Mapping | None:
        """The mapping that contains the address, else the last one before it."""
        place = bisect.bisect_right(self._starts, address) - 1
        return self.mappings[place] if place >= 0 else None

    def above(self, address: int) -> Mapping | None:
        """The first mapping that begins behind the address."""
        place = bisect.bisect_right(self._starts, address)
        return self.mappings[place] if place < len(self.mappings) else None

    def is_code(self, address: int) -> bool:
        mapping = self.at(address)
        return mapping is not None and "x" in mapping.permissions

    def of_file(self, path: str) -> int:
        """Where the first byte of a file is mapped."""
        return next(mapping.start for mapping in self.mappings if mapping.path == path)
