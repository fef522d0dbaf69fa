"""What /proc tells of a process (proc(5))."""

from __future__ import annotations

import contextlib
from pathlib import Path


def _stat(path: str) -> list[str]:
    """The fields of a stat file after the name: the first is the state (field 3 of proc(5))."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def processor_of(pid: int) -> int:
    """The processor that a thread ran on last, -1 if unknown."""
    fields = _stat(f"/proc/{pid}/stat")
    return int(fields[36]) if len(fields) > 36 else -1


def is_tracing_stop(pid: int, tid: int) -> bool:
    """Whether a thread stands still for its tracer."""
    return _stat(f"/proc/{pid}/task/{tid}/stat")[:1] == ["t"]


def status(pid: int) -> dict[str, str]:
    """The fields of a process's or thread's status file by name; {} if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def thread_group(tid: int) -> int:
    """The process that a thread belongs to, 0 if it is gone."""
    return int(status(tid).get("Tgid", 0))


def catches_signal(pid: int, number: int) -> bool:
    """Whether the process has its own handler for a signal."""
    return bool(int(status(pid).get("SigCgt", "0"), 16) >> (number - 1) & 1)


def thread_name(pid: int, tid: int) -> str:
    """The name of a thread, "" if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/task/{tid}/comm").read_text(errors="replace").strip()
    return ""


def command_line(pid: int) -> str:
    """The words of a process's command, "" if it is gone."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words)
    return ""
