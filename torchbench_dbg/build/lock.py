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
        write_atomically(holder, json.dumps({"pid": os.getpid(), "since": time.time()}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _who(holder: Path) -> str:
    try:
        data = json.loads(holder.read_text(encoding="utf-8"))
        return (
            f", by process {int(data['pid'])} since {time.strftime('%H:%M:%S', time.localtime(float(data['since'])))}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ""
