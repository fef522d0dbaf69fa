"""One build of a tree at a time: a lock that the kernel gives back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from torchbench_dbg.errors import BuildError
from torchbench_dbg.paths import write_atomically

MARK = "TDBG_BUILD"  # a variable of all of a build's processes: its folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a build's folder. BuildError, with who holds it, if another process does."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / "holder.json"
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise BuildError(f"this tree is being built already{_who(holder)}.", hint="wait for it, or end it") from error
    try:
        _end_leftovers(folder)
        write_atomically(holder, json.dumps({"pid": os.getpid(), "since": time.time()}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _end_leftovers(folder: Path) -> None:
    """End what a killed tdbg left running: two ninjas in one directory would spoil it. Only we have the lock now, so
    whatever carries this build's mark is a leftover."""
    import psutil

    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(folder):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, timeout=10)


def _who(holder: Path) -> str:
    try:
        data = json.loads(holder.read_text(encoding="utf-8"))
        return (
            f", by process {int(data['pid'])} since {time.strftime('%H:%M:%S', time.localtime(float(data['since'])))}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ""
