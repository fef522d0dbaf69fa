"""The event loop: follows every thread of a process, and says when something happens that the engine must know."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.children import Children
from torchbench_dbg.trace.dispatch_keys import KeySetReader
from torchbench_dbg.trace.entrylog import EntryLog
from torchbench_dbg.trace.injection import SystemCalls
from torchbench_dbg.trace.outcome import Outcome
from torchbench_dbg.trace.probes import ProbeSet, SetProtection, read_mappings, regions_of
from torchbench_dbg.trace.processor import SharedProcessor
from torchbench_dbg.trace.symbols import SymbolIndex

MARKER = signal.SIGURG
_FATAL = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP}
)
_SI_TKILL = -6  # a signal sent to one thread: pthread_kill
_SEGV_ACCESS = 2  # SEGV_ACCERR: mapped, but not with that permission
_LONGEST_INSTRUCTION = 16


class _Expired(Exception):
    pass


@dataclass(slots=True, kw_only=True)
class Tracer:
    """Follows one process: `follow` it, `run` to the start marker, `begin`, `run` on. All in one thread."""

    pid: int
    probes: ProbeSet
    log: EntryLog
    python_breaks: Callable[[], tuple[int, int]]  # how many calls of Python breakpoints, and which was the last
    break_addresses: frozenset[int] = frozenset()

    children: Children = field(init=False)
    _python_breaks_seen: int = 0
    _listening: set[int] = field(default_factory=set)  # threads in a group-stop: they take no requests but INTERRUPT
    _last_fault: dict[int, tuple[int, int]] = field(default_factory=dict)
    _waiting: bool = False
    _expired: bool = False

    def __post_init__(self) -> None:
        self.children = Children(pid=self.pid, probes=self.probes, processor=self.processor, protector=self._protector)

    @property
    def architecture(self) -> Architecture:
        return self.log.architecture

    @property
    def processor(self) -> SharedProcessor:
        return self.log.processor

    @property
    def _registers(self) -> ptrace.Registers:
        return self.log.registers

    @classmethod
    def follow(
        cls,
        pid: int,
        *,
        architecture: Architecture,
        categories: frozenset[int],
        count_python_events: Callable[[], int],
        python_breaks: Callable[[], tuple[int, int]],
        max_stops: int,
        max_hits: int,
    ) -> Tracer:
        """Seize a process, all its threads and all that it will start. No probes yet."""
        mappings = read_mappings(pid)
        probes = ProbeSet(pid, architecture=architecture, categories=categories)
        log = EntryLog(
            probes=probes,
            calls=SystemCalls(architecture, mappings, pid),
            architecture=architecture,
            count_python_events=count_python_events,
            key_sets=KeySetReader(architecture, mappings),
            max_stops=max_stops,
            max_hits=max_hits,
            processor=SharedProcessor(),
        )
        tracer = cls(pid=pid, probes=probes, log=log, python_breaks=python_breaks)
        log.remove_probes = tracer.remove_probes
        try:
            ptrace.seize_all(pid)
        except BaseException:
            probes.close()
            raise
        return tracer

    def watch(self, libraries: dict[str, tuple[int, SymbolIndex]]) -> None:
        """The libraries to guard, by path; before `begin`."""
        mappings = read_mappings(self.pid)
        self.log.key_sets = KeySetReader(self.architecture, mappings)
        self.probes.watch(regions_of(mappings, libraries), mappings)

    def close(self) -> None:
        """Let go of what the tracer holds; the process and what it started are no longer needed."""
        self.children.kill()
        self.processor.give_back()
        self.probes.close()

    # -- life ---------------------------------------------------------------------------------------------

    def run(self, timeout: float) -> Outcome:
        """Follow until something happens that the caller must know of. `timeout` in seconds."""
        previous = signal.signal(signal.SIGALRM, self._on_alarm)
        self._expired = False
        signal.setitimer(signal.ITIMER_REAL, timeout)
        try:
            while True:
                tid, status = self._wait()
                try:
                    outcome = self._handle(tid, status)
                except ptrace.TraceeGone:
                    continue
                if outcome is not None:
                    return outcome
        except _Expired:
            return Outcome(kind="timeout", tid=self.pid)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    def begin(self, tid: int) -> None:
        """Guard the libraries; `tid` stands still, as at the start marker."""
        self.processor.share(tid)
        self.probes.guard(self._protector(tid))

    def finish(self, tid: int) -> None:
        """At the end marker: take every probe back and let the process go, untraced."""
        self.remove_probes(tid)
        self.children.kill()
        for thread in self.stop_everything():
            self._detach(thread)

    def suspend(self, tid: int) -> None:
        """Leave the process stopped (SIGSTOP) and untraced, as another debugger can attach to it.

        `tid` is the thread of interest: it executes nothing until `resume_suspended`.
        """
        stopped = self.stop_everything()
        self.remove_probes(tid)
        os.kill(self.pid, signal.SIGSTOP)
        for thread in sorted(stopped, key=lambda thread: thread != tid):
            self._detach(thread)

    def resume_suspended(self, outcome: Outcome) -> None:
        """Seize a suspended process again and go on past the breakpoint at which a thread stands."""
        ptrace.seize_all(self.pid)
        stopped = self.stop_everything()
        os.kill(self.pid, signal.SIGCONT)  # ends the group-stop; each thread still waits for its own resume
        self.begin(outcome.tid)
        if outcome.kind == "hit":
            self.probes.plant(outcome.address, self._protector(outcome.tid))
        for thread in stopped:
            if thread == outcome.tid:
                self.go_on(outcome)
            else:
                ptrace.resume(thread)

    @staticmethod
    def _detach(tid: int) -> None:
        with contextlib.suppress(ptrace.TraceeGone):
            ptrace.detach(tid)

    def remove_probes(self, tid: int) -> None:
        """Every byte back, from a thread that is stopped outside a system call."""
        self.processor.give_back()
        self.probes.remove_all(self._protector(tid))

    def stop_everything(self) -> list[int]:
        """Stop every thread of the process, the program counter of each at a real instruction."""
        stopped = []
        for tid in ptrace.threads(self.pid):
            if self._stop(tid):
                stopped.append(tid)
        return stopped

    # -- waiting ------------------------------------------------------------------------------------------

    def _on_alarm(self, _number: int, _frame: object) -> None:
        self._expired = True
        if self._waiting:
            raise _Expired

    def _wait(self) -> tuple[int, int]:
        self._waiting = True
        try:
            if self._expired:
                raise _Expired
            return os.waitpid(-1, ptrace.WAIT_ALL)
        finally:
            self._waiting = False

    def _stop(self, tid: int) -> bool:
        deadline = time.monotonic() + 5
        asked = False
        while time.monotonic() < deadline:
            try:
                waited, status = os.waitpid(tid, ptrace.WAIT_ALL | os.WNOHANG)
            except ChildProcessError:
                waited, status = 0, 0
            if waited and not os.WIFSTOPPED(status):
                return False
            if waited:
                self._listening.discard(tid)
                self._settle(tid, status)
                return True
            if procfs.is_tracing_stop(self.pid, tid) and tid not in self._listening:
                return True
            if not asked:
                try:
                    ptrace.interrupt(tid)
                except ptrace.TraceeGone:
                    return False
                asked = True
            time.sleep(0.0002)
        return False

    def _settle(self, tid: int, status: int) -> None:
        """A thread stopped while all are being stopped: undo a breakpoint's step of the program counter."""
        if os.WSTOPSIG(status) == signal.SIGTRAP and status >> 16 == 0:
            block = self._registers.read(tid)
            counter = getattr(block, self.architecture.program_counter) - len(self.architecture.breakpoint)
            if counter in self.probes.probes or counter in self.probes.exits:
                setattr(block, self.architecture.program_counter, counter)
                self._registers.write(tid)

    # -- events -------------------------------------------------------------------------------------------

    def _handle(self, tid: int, status: int) -> Outcome | None:
        self._listening.discard(tid)
        if not os.WIFSTOPPED(status):
            return self._on_exit(tid, status)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == 0:
            if number == signal.SIGTRAP:
                return self._on_trap(tid)
            return self._on_signal(tid, number)
        if event == ptrace.EVENT_STOP and number in ptrace.GROUP_STOP_SIGNALS:
            ptrace.listen(tid)
            self._listening.add(tid)
        elif event == ptrace.EVENT_STOP and not self.log.knows(tid) and procfs.thread_group(tid) != self.pid:
            self.children.on_first_stop(tid)
        else:
            if event in (ptrace.EVENT_FORK, ptrace.EVENT_VFORK, ptrace.EVENT_CLONE):
                self.children.on_birth(ptrace.event_message(tid), event)
            ptrace.resume(tid)
        return None

    def _on_exit(self, tid: int, status: int) -> Outcome | None:
        self.children.processes.discard(tid)
        if tid != self.pid:
            return None
        if os.WIFSIGNALED(status):
            return Outcome(kind="killed", tid=tid, code=os.WTERMSIG(status))
        return Outcome(kind="exited", tid=tid, code=os.WEXITSTATUS(status))

    def _on_trap(self, tid: int) -> Outcome | None:
        block = self._registers.read(tid)
        address = getattr(block, self.architecture.program_counter) - len(self.architecture.breakpoint)
        if probe := self.probes.probes.get(address):
            self.log.note(tid, probe)
            if address in self.break_addresses:
                setattr(block, self.architecture.program_counter, address)
                self._registers.write(tid)
                return Outcome(kind="hit", tid=tid, address=address, program_counter=address)
            self.log.go_on_from(tid, probe)
        elif exit_probe := self.probes.exits.get(address):
            self.log.on_return(tid, exit_probe)
        else:
            return self._on_signal(tid, signal.SIGTRAP)
        return None

    def go_on(self, outcome: Outcome) -> None:
        """Go on from an outcome that left the thread standing: a marker or a hit."""
        counter = getattr(self._registers.read(outcome.tid), self.architecture.program_counter)
        probe = self.probes.probes.get(counter)
        if outcome.kind == "hit" and probe is not None:
            self.log.go_on_from(outcome.tid, probe)
        else:
            ptrace.resume(outcome.tid)

    def _on_signal(self, tid: int, number: int) -> Outcome | None:
        if tid in self.children.processes:
            ptrace.resume(tid, number)
            return None
        if number == MARKER:
            info = ptrace.signal_info(tid)
            if info.code == _SI_TKILL and info.sender == self.pid:
                return self._on_marker(tid)
        if number == signal.SIGSEGV and self._on_guard_fault(tid):
            return None
        if number in _FATAL and not procfs.catches_signal(self.pid, number):
            counter = getattr(self._registers.read(tid), self.architecture.program_counter)
            address = int(ptrace.signal_info(tid).address)
            return Outcome(kind="crashed", tid=tid, code=number, address=address, program_counter=counter)
        ptrace.resume(tid, number)
        return None

    def _on_marker(self, tid: int) -> Outcome:
        count, position = self.python_breaks()
        if count > self._python_breaks_seen:
            self._python_breaks_seen = count
            return Outcome(kind="python hit", tid=tid, code=position)
        return Outcome(kind="marker", tid=tid)

    def _on_guard_fault(self, tid: int) -> bool:
        info = ptrace.signal_info(tid)
        address = int(info.address)
        if info.code != _SEGV_ACCESS or not self.probes.is_guard_fault(address):
            return False
        counter = getattr(self._registers.read(tid), self.architecture.program_counter)
        if not counter <= address < counter + _LONGEST_INSTRUCTION:
            return False
        if self._last_fault.get(tid) == (counter, address):
            return False
        self._last_fault[tid] = (counter, address)
        self.probes.plant(address, self._protector(tid))
        ptrace.resume(tid)
        return True

    def _protector(self, tid: int) -> SetProtection:
        return lambda start, length, protection: self.log.calls.protect(tid, start, length, protection)
