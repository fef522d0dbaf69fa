"""Whether the kernel's OOM killer has acted, by the counts of the memory cgroup.

cgroup v2: memory.events; v1: memory.oom_control.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def kills() -> int | None:
    """How many processes of this memory cgroup the kernel has ended so far; None where that can't be read."""
    for file in _files():
        try:
            for line in file.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        except (OSError, ValueError):
            continue
    return None


def _files() -> list[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inside = path.lstrip("/")
        if not controllers:
            files += [_ROOT / inside / "memory.events", _ROOT / "memory.events"]
        elif "memory" in controllers.split(","):
            files += [_ROOT / "memory" / inside / "memory.oom_control", _ROOT / "memory" / "memory.oom_control"]
    return files
