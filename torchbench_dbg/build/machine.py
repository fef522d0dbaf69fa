"""What this machine can give to a build: processors, memory (a container's limit counts), disk."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Memory that one compiler takes on PyTorch's larger C++ files: 1.5 to 2 GB.
BYTES_A_JOB = 2_000_000_000
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_NO_LIMIT = 1 << 60  # cgroup v1 says "none" as a number near 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Processors that this process may use; memory in bytes: the machine's, or the container's limit."""

    processors: int
    memory: int
    limited_by: str | None = None


def this_machine() -> Machine:
    """Asked of the kernel."""
    processors = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limited_by = None
    for path in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            limit = int(Path(path).read_text(encoding="ascii"))
            if limit < min(memory, _NO_LIMIT):
                memory, limited_by = limit, path
    return Machine(processors=processors, memory=memory, limited_by=limited_by)


def jobs_for(machine: Machine) -> tuple[int, str]:
    """(compilers at a time, why so many)."""
    by_memory = max(1, machine.memory // BYTES_A_JOB)
    if by_memory < machine.processors:
        return by_memory, f"{machine.memory / 1e9:.0f} GB of memory, {BYTES_A_JOB / 1e9:.0f} GB a compiler"
    return machine.processors, f"{machine.processors} processors"


def free_bytes(path: Path) -> int:
    """Free space where `path` is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
