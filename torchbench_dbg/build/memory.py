"""A build that ran out of memory: how it shows, whoever was killed."""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path

from torchbench_dbg.build.shell import CommandFailed

# What compilers and linkers print when a part of them was killed or could not get memory.
_SIGNS = re.compile(
    r"[Kk]illed signal terminated program|internal compiler error: Killed|out of memory allocating"
    r"|virtual memory exhausted|LLVM ERROR: out of memory|std::bad_alloc|^Killed\b"
    r"|(ld|collect2|mold|ld\.lld): .*(terminated with signal 9|memory exhausted|Cannot allocate memory)"
    r"|error: command .* failed with exit (code|status) 137"
)
_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def is_sign(line: str) -> bool:
    """Whether a line of output says that memory ran out."""
    return _SIGNS.search(line) is not None


def kills() -> int:
    """How many processes of this container the kernel has killed for want of memory; 0 where it does not say."""
    for path in _EVENTS:
        with contextlib.suppress(OSError, ValueError):
            for line in Path(path).read_text(encoding="ascii").splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def ran_out(failure: CommandFailed, kills_before: int) -> bool:
    """Whether a command failed for want of memory: it says so, it was killed itself, or the kernel counts it."""
    killed = failure.code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return killed or kills() > kills_before or any(map(is_sign, failure.signs))
