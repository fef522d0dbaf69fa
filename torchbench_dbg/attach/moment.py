"""A process at one moment, copied while it stands still: registers, stacks, Python's frames. Then it goes on."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from torchbench_dbg.attach.states import thread_state
from torchbench_dbg.crash.python_frames import PythonFrame
from torchbench_dbg.crash.snapshot import AddressMap, ThreadState, Unreadable
from torchbench_dbg.errors import PtraceForbidden, TargetError
from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.probes import Mapping, read_mappings

_MOST_STACK = 1 << 20  # bytes of each stack, from the stack pointer up
_RED_ZONE = 128  # below the stack pointer; the System V ABI lets leaf functions use it
_PATIENCE = 2.0  # seconds for all threads to stand still
_PAGE = 4096

Groups = list[list[PythonFrame]]
"""A thread's Python frames: for each call of the evaluation loop those that it ran, innermost first."""


class Memory:
    """Reads a process's memory: what was copied from the copy, the rest (code, tables) as it is now."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self._copies: list[tuple[int, bytes]] = []
        self._pages: dict[int, bytes] = {}

    def close(self) -> None:
        os.close(self._descriptor)

    def copy(self, start: int, length: int) -> None:
        """Keep a range as it is now; what can't be read of it is left out."""
        with contextlib.suppress(OSError, OverflowError):
            self._copies.append((start, os.pread(self._descriptor, length, start)))

    def read(self, address: int, length: int) -> bytes:
        """Exactly so many bytes. Unreadable where they are not there."""
        for start, data in self._copies:
            if start <= address and address + length <= start + len(data):
                return data[address - start : address - start + length]
        try:
            data = os.pread(self._descriptor, length, address)
        except (OSError, OverflowError) as error:
            raise Unreadable(f"{address:#x}") from error
        if len(data) < length:
            raise Unreadable(f"{address:#x}")
        return data

    def read_by_page(self, address: int, length: int) -> bytes:
        """As `read`, for many small reads close together while the process stands still."""
        base = address & ~(_PAGE - 1)
        if address + length > base + _PAGE:
            return self.read(address, length)
        page = self._pages.get(base)
        if page is None:
            page = self._pages[base] = self.read(base, _PAGE)
        return page[address - base : address - base + length]

    def forget_pages(self) -> None:
        self._pages.clear()


@dataclass(slots=True, kw_only=True)
class Moment:
    """What was copied; it is a crash.snapshot.Snapshot. `stopped` in milliseconds."""

    pid: int
    memory: Memory
    mappings: Sequence[Mapping]
    threads: list[ThreadState] = field(default_factory=list)
    python: dict[int, Groups] = field(default_factory=dict)
    stopped: float = 0.0
    missed: int = 0  # threads that did not stand still in time

    def read(self, address: int, length: int) -> bytes:
        return self.memory.read(address, length)


def look(moment: Moment, architecture: Architecture, python_of: Callable[[int], Groups] | None) -> None:
    """Stop every thread, copy, let go. `python_of`: a thread's Python frames by pthread_self(), read while it stands.

    TargetError if the process is gone, PtraceForbidden if the kernel refuses.
    """
    registers = ptrace.Registers(architecture)
    stacks = AddressMap(moment.mappings)
    with _standing(moment) as standing:
        for tid in standing:
            with contextlib.suppress(ptrace.TraceeGone):
                block = registers.read(tid)
                values = {name: int(getattr(block, name)) for name, *_ in block._fields_}
                name = procfs.thread_name(moment.pid, tid)
                moment.threads.append(ThreadState(native_id=tid, name=name, registers=values))
        for thread in moment.threads:
            pointer = thread.registers["rsp"] - _RED_ZONE
            mapping = stacks.at(pointer + _RED_ZONE)
            end = mapping.end if mapping else pointer + _RED_ZONE
            moment.memory.copy(pointer, min(end - pointer, _MOST_STACK))
            if python_of is not None:
                moment.python[thread.native_id] = python_of(thread.registers["fs_base"])
    moment.memory.forget_pages()


@contextlib.contextmanager
def _standing(moment: Moment) -> Iterator[list[int]]:
    """The threads, standing still. They go on afterwards, whatever happens; a process that was stopped stays so."""
    seized: list[int] = []
    began = time.perf_counter()
    try:
        stopped = _stop_all(moment, seized)
        yield stopped
    finally:
        for tid in seized:
            with contextlib.suppress(ptrace.TraceeGone, OSError):
                ptrace.detach(tid)
        moment.stopped = (time.perf_counter() - began) * 1000


def _stop_all(moment: Moment, seized: list[int]) -> list[int]:
    """Seize and stop each thread, also those that are born meanwhile."""
    stopped: list[int] = []
    deadline = time.monotonic() + _PATIENCE
    known: set[int] = set()
    while new := [tid for tid in ptrace.threads(moment.pid) if tid not in known]:
        known.update(new)
        for tid in new:
            try:
                ptrace.watch(tid)
            except ptrace.TraceeGone:
                continue
            except PtraceForbidden as error:
                if thread_state(moment.pid, tid) in ("", "ended"):
                    continue  # what is just ending may not be seized
                raise _refused(moment.pid) or error from error
            seized.append(tid)
            with contextlib.suppress(ptrace.TraceeGone):
                ptrace.interrupt(tid)
        for tid in new:
            if tid in seized and _wait(tid, deadline):
                stopped.append(tid)
    if not seized:
        raise TargetError(f"process {moment.pid} has ended.")
    moment.missed = len(seized) - len(stopped)
    return stopped


def _wait(tid: int, deadline: float) -> bool:
    while time.monotonic() < deadline:
        try:
            waited, status = os.waitpid(tid, os.WNOHANG | ptrace.WAIT_ALL)
        except ChildProcessError:
            return False
        if waited:
            return os.WIFSTOPPED(status)
        time.sleep(0.0001)
    return False


def _refused(pid: int) -> PtraceForbidden | None:
    """Why the kernel does not let this process be looked at, where /proc tells."""
    status = procfs.status(pid)
    tracer = status.get("TracerPid", "0")
    if tracer != "0":
        name = procfs.thread_name(int(tracer), int(tracer))
        return PtraceForbidden(f"process {pid} is traced already, by process {tracer} ({name}).", hint="end that first")
    owner = status.get("Uid", "").split()[:1]
    if owner and int(owner[0]) != os.geteuid() and os.geteuid() != 0:
        return PtraceForbidden(f"process {pid} belongs to another user (uid {owner[0]}).", hint="sudo tdbg attach PID")
    return None


def open_moment(pid: int) -> Moment:
    """Before the stop: what is mapped, and a way to its memory. TargetError, PtraceForbidden."""
    try:
        memory = Memory(pid)
    except FileNotFoundError as error:
        raise TargetError(f"there is no process {pid}.") from error
    except OSError as error:
        raise _refused(pid) or PtraceForbidden(f"process {pid} may not be looked at: {error.strerror}.") from error
    return Moment(pid=pid, memory=memory, mappings=read_mappings(pid))
