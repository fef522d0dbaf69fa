"""ptrace(2) as the tracer needs it: seize, read and set registers, step, continue, detach.

All calls must come from the thread that seized (ptrace is bound to a thread). Numbers are from linux/ptrace.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from pathlib import Path
from typing import Any

from torchbench_dbg.errors import PtraceForbidden
from torchbench_dbg.trace.architecture import Architecture

_CONT, _SINGLESTEP, _GETREGS, _SETREGS, _DETACH = 7, 9, 12, 13, 17
_GETEVENTMSG, _GETSIGINFO, _SEIZE, _INTERRUPT, _LISTEN = 0x4201, 0x4202, 0x4206, 0x4207, 0x4208

EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_SECCOMP, EVENT_STOP = 1, 2, 3, 7, 128
OPTION_SECCOMP = 0x80  # stop where a seccomp filter says so (SECCOMP_RET_TRACE)
# Follow every thread and child, and kill them all should tdbg die (PTRACE_O_EXITKILL).
_OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
WAIT_ALL = 0x40000000  # __WALL: threads too

GROUP_STOP_SIGNALS = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class TraceeGone(Exception):
    """The thread died or is not stopped (ESRCH): an event will tell."""


class SignalInfo(ctypes.Structure):
    """The part of `siginfo_t` that is read here (bits/types/siginfo_t.h, 64-bit Linux)."""

    _fields_ = [
        ("number", ctypes.c_int),
        ("error", ctypes.c_int),
        ("code", ctypes.c_int),
        ("_pad", ctypes.c_int),
        ("address", ctypes.c_ulonglong),  # si_addr of a fault; si_pid and si_uid of a sent signal
        ("_rest", ctypes.c_byte * 104),
    ]

    @property
    def sender(self) -> int:
        """si_pid of a signal that was sent by a process."""
        return int(self.address) & 0xFFFFFFFF


def _ptrace(request: int, tid: int, address: Any = None, data: Any = None) -> int:
    result = int(_libc.ptrace(request, tid, address, data))
    if result == -1:
        code = ctypes.get_errno()
        if code == errno.ESRCH:
            raise TraceeGone(tid)
        if code == errno.EPERM and request == _SEIZE:
            raise forbidden()
        raise OSError(code, f"ptrace request {request:#x} on {tid}: {os.strerror(code)}")
    return result


def forbidden() -> PtraceForbidden:
    """Why the kernel refuses, as far as it can be known, and what allows it."""
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        scope = 0
    if scope >= 2:
        return PtraceForbidden(
            f"the kernel does not let tdbg trace its own child (yama ptrace_scope is {scope}).",
            hint="sudo sysctl kernel.yama.ptrace_scope=1"
            if scope == 2
            else "ptrace_scope 3 can only be undone by a reboot: set kernel.yama.ptrace_scope=1 in /etc/sysctl.d",
            docs="docs/how-to/ptrace.md",
        )
    return PtraceForbidden(
        "ptrace is forbidden here: a container's seccomp profile or another tracer is in the way.",
        hint="docker run --cap-add=SYS_PTRACE --security-opt seccomp=unconfined ...; "
        "not under strace, gdb or a sandbox that traces already",
        docs="docs/how-to/ptrace.md",
    )


def seize(tid: int, *, more_options: int = 0) -> None:
    """Attach without stopping. TraceeGone if it died, PtraceForbidden if the kernel refuses."""
    _ptrace(_SEIZE, tid, None, _OPTIONS | more_options)


def watch(tid: int) -> None:
    """Attach to a thread of somebody else's process: no children followed, and nothing ends should tdbg die."""
    _ptrace(_SEIZE, tid, None, 0)


def interrupt(tid: int) -> None:
    _ptrace(_INTERRUPT, tid)


def resume(tid: int, deliver: int = 0) -> None:
    """Let a stopped thread run on, delivering that signal (0: none)."""
    _ptrace(_CONT, tid, None, deliver)


def step(tid: int) -> None:
    _ptrace(_SINGLESTEP, tid)


def listen(tid: int) -> None:
    """Leave a thread in its group-stop, yet hear of what comes next."""
    _ptrace(_LISTEN, tid)


def detach(tid: int, deliver: int = 0) -> None:
    _ptrace(_DETACH, tid, None, deliver)


def event_message(tid: int) -> int:
    """The new thread's or child's id after a fork, vfork or clone event."""
    value = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, tid, None, ctypes.byref(value))
    return value.value


def signal_info(tid: int) -> SignalInfo:
    info = SignalInfo()
    _ptrace(_GETSIGINFO, tid, None, ctypes.byref(info))
    return info


class Registers:
    """One reusable register block; `read` and `write` move it whole."""

    def __init__(self, architecture: Architecture) -> None:
        self.block: Any = architecture.registers()
        self._reference = ctypes.byref(self.block)

    def read(self, tid: int) -> Any:
        _ptrace(_GETREGS, tid, None, self._reference)
        return self.block

    def write(self, tid: int) -> None:
        _ptrace(_SETREGS, tid, None, self._reference)

    def copy(self) -> bytes:
        return bytes(self.block)

    def restore(self, tid: int, saved: bytes) -> None:
        ctypes.memmove(self._reference, saved, len(saved))
        self.write(tid)


def threads(pid: int) -> list[int]:
    """Ids of the process's threads, the leader first."""
    try:
        tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return []
    return sorted(tids, key=lambda tid: tid != pid)


def seize_all(pid: int, *, more_options: int = 0) -> list[int]:
    """Seize every thread of a process, also those born meanwhile."""
    seized: list[int] = []
    while new := [tid for tid in threads(pid) if tid not in seized]:
        for tid in new:
            try:
                seize(tid, more_options=more_options)
            except TraceeGone:
                continue
            except PtraceForbidden:
                # A thread born of a seized one is traced already, and refused a second time.
                if tid == pid:
                    raise
            seized.append(tid)
    return seized
