"""What a thread is doing, as the kernel tells (proc(5))."""

from __future__ import annotations

import contextlib
from pathlib import Path

_STATES = {"R": "running", "S": "sleeping", "D": "in the kernel", "T": "stopped", "t": "traced"}
_STATES |= {"Z": "ended", "X": "ended"}
# x86-64 numbers of system calls in which threads wait.
_WAITS = {
    "202": "waiting for a lock",
    "232": "waiting for events",
    "281": "waiting for events",
    "7": "waiting for input",
}
_WAITS |= {"23": "waiting for input", "35": "sleeping", "230": "sleeping", "61": "waiting for a child", "0": "reading"}
_WAITS |= {
    "34": "waiting for a signal",
    "45": "receiving",
    "288": "waiting for a connection",
    "43": "waiting for a connection",
}


def thread_state(pid: int, tid: int) -> str:
    """In a few words, "" if it is gone."""
    folder = Path(f"/proc/{pid}/task/{tid}")
    with contextlib.suppress(OSError, IndexError):
        letter = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        if letter == "S":
            with contextlib.suppress(OSError):
                return _WAITS.get((folder / "syscall").read_text().split()[0], "sleeping")
        return _STATES.get(letter, letter)
    return ""
