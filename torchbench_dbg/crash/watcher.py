"""Follows a script and all that it starts, at full speed: it is stopped only where a process is about to die."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torchbench_dbg import process
from torchbench_dbg.crash.stderr import WrittenText
from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.architecture import Architecture

FATAL = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP}
)
_MOST_DEATHS = 8  # that are looked at: a pool of a hundred workers dies of one cause
_GRACE = 1.0  # seconds that the other processes have after a script that ended by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A signal at the moment when it was raised: siginfo_t's numbers and all registers (raw)."""

    signal: int
    code: int
    address: int
    sender: int
    registers: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A thread that is about to end its process. `fault` is None where the time is over and nothing is wrong."""

    pid: int
    tid: int
    fault: Fault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the script ended: `status` as os.waitpid has it, None if the time was over; the peak of its memory, bytes."""

    status: int | None
    peak_memory: int
    seconds: float


class _Expired(Exception):
    pass


@dataclass(slots=True, kw_only=True)
class Watcher:
    """`on_death` is called while every thread of the dying process stands still (traced by this thread)."""

    architecture: Architecture
    written: WrittenText
    on_death: Callable[[Death], None] = lambda _death: None
    _groups: dict[int, int] = field(default_factory=dict)  # thread -> process
    _faults: dict[int, Fault] = field(default_factory=dict)  # the last one that a handler of the script's got
    _deaths: set[int] = field(default_factory=set)  # processes that have been looked at
    _is_late: bool = False
    _waiting: bool = False

    def follow(self, child: process.Held, *, timeout: float | None) -> Ending:
        """Let the child go and follow it to its end. PtraceForbidden if the kernel refuses."""
        began = time.monotonic()
        try:
            ptrace.seize(child.pid, more_options=ptrace.OPTION_SECCOMP)
        except BaseException:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            raise
        self._groups[child.pid] = child.pid
        # Ctrl-C is the script's: the terminal sends it to the whole group.
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
        handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        try:
            signal.setitimer(signal.ITIMER_REAL, timeout or 0)
            child.release()
            status, peak = self._until_ended(child.pid)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._let_go(died=os.WIFSIGNALED(status))
            return Ending(status=status, peak_memory=peak, seconds=time.monotonic() - began)
        except _Expired:
            self._waiting = False
            self._on_expired(child.pid)
            return Ending(status=None, peak_memory=0, seconds=time.monotonic() - began)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._kill_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _on_alarm(self, _number: int, _frame: object) -> None:
        self._is_late = True
        if self._waiting:
            raise _Expired

    def _until_ended(self, pid: int) -> tuple[int, int]:
        while True:
            self._waiting = True
            if self._is_late:
                raise _Expired
            tid, status, usage = os.wait4(-1, ptrace.WAIT_ALL)
            self._waiting = False
            if os.WIFSTOPPED(status):
                with contextlib.suppress(ptrace.TraceeGone):
                    self._on_stop(tid, status)
                continue
            self._groups.pop(tid, None)
            self._faults.pop(tid, None)
            if tid == pid:
                return status, usage.ru_maxrss * 1024

    def _on_stop(self, tid: int, status: int) -> None:
        if tid not in self._groups:
            self._groups[tid] = procfs.thread_group(tid)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == ptrace.EVENT_STOP and number in ptrace.GROUP_STOP_SIGNALS:
            ptrace.listen(tid)
        elif event == ptrace.EVENT_SECCOMP:
            self.written.on_write(tid)
            ptrace.resume(tid)
        elif event:
            ptrace.resume(tid)
        else:
            self._on_signal(tid, number)

    def _on_signal(self, tid: int, number: int) -> None:
        if number not in FATAL:
            ptrace.resume(tid, number)
            return
        fault, pid = self._fault(tid, number), self._groups[tid]
        status = procfs.status(tid)
        caught, ignored = (bool(int(status.get(name, "0"), 16) >> (number - 1) & 1) for name in ("SigCgt", "SigIgn"))
        if caught and not _blocked(status, number, fault):
            self._faults[tid] = fault
        elif not ignored or fault.code > 0:
            earlier = self._faults.get(tid)
            # A handler that raises the signal again: what it was for is what counts.
            if earlier is not None and earlier.signal == number and fault.code <= 0:
                fault = earlier
            self._look_at(Death(pid=pid, tid=tid, fault=fault))
        ptrace.resume(tid, number)

    def _fault(self, tid: int, number: int) -> Fault:
        info = ptrace.signal_info(tid)
        registers = ptrace.Registers(self.architecture)
        registers.read(tid)
        return Fault(
            signal=number,
            code=info.code,
            address=int(info.address) if info.code > 0 else 0,
            sender=info.sender if info.code <= 0 else 0,
            registers=registers.copy(),
        )

    def _look_at(self, death: Death) -> None:
        if death.pid in self._deaths or len(self._deaths) >= _MOST_DEATHS:
            return
        self._deaths.add(death.pid)
        stopped = self._stop_others(death)
        try:
            self.on_death(death)
        finally:
            for tid, deliver in stopped.items():
                with contextlib.suppress(ptrace.TraceeGone):
                    ptrace.resume(tid, deliver)

    @contextlib.contextmanager
    def untraced(self, death: Death) -> Iterator[None]:
        """While a process is looked at: let another debugger attach to it, stopped; afterwards it dies as it would."""
        stopped = ptrace.threads(death.pid)
        os.kill(death.pid, signal.SIGSTOP)
        for tid in sorted(stopped, key=lambda tid: tid != death.tid):
            with contextlib.suppress(ptrace.TraceeGone):
                ptrace.detach(tid)
        try:
            yield
        finally:
            ptrace.seize_all(death.pid, more_options=ptrace.OPTION_SECCOMP)
            self._stop_others(Death(pid=death.pid, tid=0, fault=None))
            if death.fault is not None:
                os.kill(death.pid, death.fault.signal)  # the one that was on its way is gone
            os.kill(death.pid, signal.SIGCONT)

    def _stop_others(self, death: Death) -> dict[int, int]:
        """Stop the other threads of the process; the signal that each was about to get."""
        stopped = {}
        for tid in ptrace.threads(death.pid):
            if tid == death.tid:
                continue
            with contextlib.suppress(ptrace.TraceeGone, ChildProcessError):
                ptrace.interrupt(tid)
                _, status = os.waitpid(tid, ptrace.WAIT_ALL)
                if os.WIFSTOPPED(status):
                    stopped[tid] = os.WSTOPSIG(status) if status >> 16 == 0 else 0
        return stopped

    def _on_expired(self, pid: int) -> None:
        """The time is over: look at the script where it stands, and at the processes that it waits for."""
        for each in sorted(set(self._groups.values()), key=lambda each: each != pid)[:_MOST_DEATHS]:
            if not each or not ptrace.threads(each):
                continue
            with contextlib.suppress(ptrace.TraceeGone, ChildProcessError):
                ptrace.interrupt(each)
                _, status = os.waitpid(each, ptrace.WAIT_ALL)
                if os.WIFSTOPPED(status):
                    death = Death(pid=each, tid=each, fault=None)
                    self._stop_others(death)
                    self.on_death(death)

    def _let_go(self, *, died: bool) -> None:
        """What outlives a script that ended by itself goes on without tdbg, as it would have; after a crash nothing."""
        if died:
            return
        until = time.monotonic() + _GRACE
        while self._groups and time.monotonic() < until:
            try:
                tid, status = os.waitpid(-1, ptrace.WAIT_ALL | os.WNOHANG)
            except ChildProcessError:
                self._groups.clear()
                return
            if tid == 0:
                time.sleep(0.005)
            elif os.WIFSTOPPED(status):
                with contextlib.suppress(ptrace.TraceeGone):
                    self._on_stop(tid, status)
            else:
                self._groups.pop(tid, None)
        for tid in list(self._groups):
            with contextlib.suppress(ptrace.TraceeGone, ChildProcessError):
                ptrace.interrupt(tid)
                _, status = os.waitpid(tid, ptrace.WAIT_ALL)
                if os.WIFSTOPPED(status):
                    ptrace.detach(tid, os.WSTOPSIG(status) if status >> 16 == 0 else 0)
        self._groups.clear()

    def _kill_all(self) -> None:
        for pid in set(self._groups.values()) | set(self._groups):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self._groups:
            try:
                tid, status = os.waitpid(-1, ptrace.WAIT_ALL)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):  # born meanwhile
                with contextlib.suppress(ProcessLookupError):
                    os.kill(procfs.thread_group(tid) or tid, signal.SIGKILL)
            else:
                self._groups.pop(tid, None)


def _blocked(status: dict[str, str], number: int, fault: Fault) -> bool:
    """The kernel ends a process that blocks a fault's signal, whatever handler it has."""
    return fault.code > 0 and bool(int(status.get("SigBlk", "0"), 16) >> (number - 1) & 1)
