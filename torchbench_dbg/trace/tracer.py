"""The event loop: follows every thread from the start marker to the end marker and notes each function entry.

The order of Python calls and C++ entries is exact: at every entry the count of Python events that the inferior
has written so far (recorder.py in inferior/) is noted beside it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torchbench_dbg.trace import ptrace
from torchbench_dbg.trace.architecture import Architecture
from torchbench_dbg.trace.dispatch_keys import KeySetReader
from torchbench_dbg.trace.injection import SystemCalls
from torchbench_dbg.trace.livestack import Entry, Exit, LiveStack
from torchbench_dbg.trace.probes import ExitProbe, Probe, ProbeSet

MARKER = signal.SIGURG
_FATAL = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP}
)
_SI_TKILL = -6  # a signal sent to one thread: pthread_kill
_SEGV_ACCESS = 2  # SEGV_ACCERR: mapped, but not with that permission
_LONGEST_INSTRUCTION = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Why the tracer stopped following."""

    kind: Literal["marker", "exited", "killed", "crashed", "hit", "python hit", "timeout"]
    tid: int = 0
    code: int = 0  # exit code, signal number, or position of the Python breakpoint
    address: int = 0  # of a fault or of the function that was hit
    program_counter: int = 0


class _Expired(Exception):
    pass


@dataclass(slots=True, kw_only=True)
class Tracer:
    """Follows one process. Create, `begin`, `run` until an Outcome, `end`; all in one thread."""

    pid: int
    probes: ProbeSet
    calls: SystemCalls
    architecture: Architecture
    count_python_events: Callable[[], int]
    key_sets: KeySetReader
    max_stops: int
    max_hits: int  # of one function, after which its probe is taken back
    break_addresses: frozenset[int] = frozenset()
    python_breaks: Callable[[], tuple[int, int]] = lambda: (0, 0)  # how many, and which was the last

    timeline: list[Entry | Exit] = field(default_factory=list)
    stops: int = 0
    cut: bool = False  # max_stops was reached
    busiest: dict[int, int] = field(default_factory=dict)  # address -> hits, of probes taken back
    children: set[int] = field(default_factory=set)
    _stacks: dict[int, LiveStack] = field(default_factory=dict)
    _registers: ptrace.Registers = field(init=False)
    _unclaimed: set[int] = field(default_factory=set)  # stopped children whose parent's event is still to come
    _awaited: dict[int, int] = field(default_factory=dict)  # child -> kind of event of its parent
    _last_fault: dict[int, tuple[int, int]] = field(default_factory=dict)
    _processors: tuple[int, set[int], set[int]] | None = None  # shared: thread, its own set, the tracer's
    _python_breaks_seen: int = 0
    _waiting: bool = False
    _expired: bool = False

    def __post_init__(self) -> None:
        self._registers = ptrace.Registers(self.architecture)

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
        """Guard the libraries; `tid` is stopped at the start marker. `release` lets it go on."""
        self._share_a_processor(tid)
        self.probes.guard(self._protector(tid))

    def _share_a_processor(self, tid: int) -> None:
        """Tracer and traced thread take turns, so one processor serves both: a stop costs a third of the time.

        Threads and processes that the expression starts get the whole set back (`_on_birth`).
        """
        with contextlib.suppress(OSError):
            self._processors = (tid, os.sched_getaffinity(tid), os.sched_getaffinity(0))
            common = self._processors[1] & self._processors[2]
            if common:
                os.sched_setaffinity(0, {max(common)})
                os.sched_setaffinity(tid, {max(common)})

    def restore_processors(self) -> None:
        """Give tracer and traced thread all their processors back."""
        if self._processors is None:
            return
        tid, theirs, ours = self._processors
        self._processors = None
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, ours)
            os.sched_setaffinity(tid, theirs)

    def release(self, tid: int, deliver: int = 0) -> None:
        ptrace.resume(tid, deliver)

    def finish(self, tid: int) -> None:
        """At the end marker: take every probe back and let the process go, untraced."""
        self.remove_probes(tid)
        self.kill_children()
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

    def kill_children(self) -> None:
        """End the processes that the expression started and left behind."""
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.children.clear()

    @staticmethod
    def _detach(tid: int) -> None:
        with contextlib.suppress(ptrace.TraceeGone):
            ptrace.detach(tid)

    def remove_probes(self, tid: int) -> None:
        """Every byte back, from a thread that is stopped outside a system call."""
        self.restore_processors()
        self.probes.remove_all(self._protector(tid))

    def live_entries(self, tid: int, stack_pointer: int) -> list[Entry]:
        """The C++ entries that are open on a thread, outermost first."""
        stack = self._stacks.get(tid)
        return stack.live(stack_pointer) if stack else []

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
                self._settle(tid, status)
                return True
            if _is_tracing_stop(self.pid, tid):
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
        if not os.WIFSTOPPED(status):
            return self._on_exit(tid, status)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == 0:
            if number == signal.SIGTRAP:
                return self._on_trap(tid)
            return self._on_signal(tid, number)
        if event == ptrace.EVENT_STOP and number in ptrace.GROUP_STOP_SIGNALS:
            ptrace.listen(tid)
        elif event == ptrace.EVENT_STOP and tid not in self._stacks and _thread_group(tid) != self.pid:
            self._on_child(tid)
        else:
            if event in (ptrace.EVENT_FORK, ptrace.EVENT_VFORK, ptrace.EVENT_CLONE):
                self._on_birth(ptrace.event_message(tid), event)
            ptrace.resume(tid)
        return None

    def _on_exit(self, tid: int, status: int) -> Outcome | None:
        self.children.discard(tid)
        if tid != self.pid:
            return None
        if os.WIFSIGNALED(status):
            return Outcome(kind="killed", tid=tid, code=os.WTERMSIG(status))
        return Outcome(kind="exited", tid=tid, code=os.WEXITSTATUS(status))

    def _on_trap(self, tid: int) -> Outcome | None:
        block = self._registers.read(tid)
        address = getattr(block, self.architecture.program_counter) - len(self.architecture.breakpoint)
        probe = self.probes.probes.get(address)
        if probe is None:
            exit_probe = self.probes.exits.get(address)
            if exit_probe is None:
                return self._on_signal(tid, signal.SIGTRAP)
            self._on_return(tid, exit_probe)
            return None
        self._note(tid, probe)
        if address in self.break_addresses:
            setattr(block, self.architecture.program_counter, address)
            self._registers.write(tid)
            return Outcome(kind="hit", tid=tid, address=address, program_counter=address)
        self._pass(tid, probe)
        return None

    def _on_return(self, tid: int, probe: ExitProbe) -> None:
        stack_pointer = getattr(self._registers.block, self.architecture.stack_pointer)
        setattr(self._registers.block, self.architecture.program_counter, probe.address)
        self._registers.write(tid)
        order = self.probes.leave(probe, tid=tid, stack_pointer=stack_pointer)
        if order is not None:
            self.timeline.append(Exit(order, tid, self.count_python_events()))
        self.probes.lift_exit(probe)
        if probe.waiting:
            self.calls.step(tid)
            self.probes.replant_exit(probe)
        ptrace.resume(tid, self.calls.postponed(tid))

    def go_on(self, outcome: Outcome) -> None:
        """Go on from a hit that was reported."""
        counter = getattr(self._registers.read(outcome.tid), self.architecture.program_counter)
        probe = self.probes.probes.get(counter)
        if outcome.kind == "hit" and probe is not None:
            self._pass(outcome.tid, probe)
        else:
            ptrace.resume(outcome.tid)

    def _note(self, tid: int, probe: Probe) -> None:
        block, architecture = self._registers.block, self.architecture
        stack_pointer = getattr(block, architecture.stack_pointer)
        stack = self._stacks.get(tid)
        if stack is None:
            stack = self._stacks[tid] = LiveStack(self.probes)
        keys = self.key_sets.read(probe, block)
        entry = stack.enter(
            probe,
            tid=tid,
            order=self.stops,
            stack_pointer=stack_pointer,
            python_events=self.count_python_events(),
            keys=keys,
        )
        self.timeline.append(entry)
        self.probes.await_exit(entry.return_address, tid=tid, stack_pointer=stack_pointer + 8, order=self.stops)
        self.stops += 1
        probe.hits += 1

    def _pass(self, tid: int, probe: Probe) -> None:
        """Execute the instruction under the probe and go on."""
        if probe.hits >= self.max_hits and probe.armed:
            self.probes.disarm(probe)
            self.busiest[probe.address] = probe.hits
        if self.stops >= self.max_stops and not self.cut:
            self.cut = True
            self._rewind(tid, probe)
            self.remove_probes(tid)
            ptrace.resume(tid)
            return
        if probe.armed and self._emulate(tid, probe):
            return
        self._rewind(tid, probe)
        if probe.armed:
            self.probes.lift(probe)
            if self.calls.step(tid):
                self.probes.replant(probe)
            else:
                # A fault at the first instruction: let it happen again, without the probe in its way.
                self.probes.disarm(probe)
        ptrace.resume(tid, self.calls.postponed(tid))

    def _emulate(self, tid: int, probe: Probe) -> bool:
        block, emulate = self._registers.block, self.architecture.emulate
        pushed = emulate(block, probe.original, probe.address) if emulate else None
        if pushed is None:
            return False
        if pushed:
            try:
                self.probes.write(getattr(block, self.architecture.stack_pointer), pushed)
            except OSError:  # the end of the stack: the real instruction must fault
                self._registers.read(tid)
                return False
        self._registers.write(tid)
        ptrace.resume(tid)
        return True

    def _rewind(self, tid: int, probe: Probe) -> None:
        setattr(self._registers.block, self.architecture.program_counter, probe.address)
        self._registers.write(tid)

    def _on_signal(self, tid: int, number: int) -> Outcome | None:
        if tid in self.children:
            ptrace.resume(tid, number)
            return None
        if number == MARKER:
            info = ptrace.signal_info(tid)
            if info.code == _SI_TKILL and info.sender == self.pid:
                return self._on_marker(tid)
        if number == signal.SIGSEGV and self._on_guard_fault(tid):
            return None
        if number in _FATAL and not _is_caught(self.pid, number):
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

    def _protector(self, tid: int) -> Callable[[int, int, int], None]:
        return lambda start, length, protection: self.calls.protect(tid, start, length, protection)

    # -- children -----------------------------------------------------------------------------------------

    def _on_birth(self, child: int, event: int) -> None:
        if self._processors is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(child, self._processors[1])
        if child in self._unclaimed:
            self._unclaimed.discard(child)
            self._adopt(child, event)
        else:
            self._awaited[child] = event

    def _on_child(self, child: int) -> None:
        if child in self.children:
            ptrace.resume(child)
        elif child in self._awaited:
            self._adopt(child, self._awaited.pop(child))
        else:
            self._unclaimed.add(child)

    def _adopt(self, child: int, event: int) -> None:
        """A new process: give a fork clean copies of the libraries (a vfork shares its parent's memory)."""
        if _thread_group(child) != self.pid:
            self.children.add(child)
            if event != ptrace.EVENT_VFORK:
                self.probes.clean_copy(child, self._protector(child))
        ptrace.resume(child)


def _is_tracing_stop(pid: int, tid: int) -> bool:
    try:
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "t"
    except OSError:
        return False


def _status_field(tid: int, name: str) -> str:
    try:
        with open(f"/proc/{tid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(name):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def _thread_group(tid: int) -> int:
    return int(_status_field(tid, "Tgid:") or 0)


def _is_caught(pid: int, number: int) -> bool:
    """Whether the process has its own handler for a signal."""
    return bool(int(_status_field(pid, "SigCgt:") or "0", 16) >> (number - 1) & 1)
