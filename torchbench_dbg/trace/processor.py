"""One processor for the tracer and the traced thread."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass


@dataclass(slots=True)
class SharedProcessor:
    """Tracer and traced thread take turns, so one processor serves both: a stop costs a third of the time.

    Without it each stop wakes up an idle processor twice.
    """

    _thread: int = 0
    _theirs: frozenset[int] = frozenset()
    _ours: frozenset[int] = frozenset()

    def share(self, tid: int) -> None:
        """Put this thread and the traced one on one processor that both may use."""
        with contextlib.suppress(OSError):
            theirs, ours = frozenset(os.sched_getaffinity(tid)), frozenset(os.sched_getaffinity(0))
            if common := theirs & ours:
                self._thread, self._theirs, self._ours = tid, theirs, ours
                os.sched_setaffinity(0, {max(common)})
                os.sched_setaffinity(tid, {max(common)})

    def free(self, tid: int) -> None:
        """A thread or process that was born on the shared processor gets the whole set."""
        if self._theirs:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(tid, self._theirs)

    def give_back(self) -> None:
        """Everybody as before."""
        if self._theirs:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self._ours)
                os.sched_setaffinity(self._thread, self._theirs)
            self._theirs = frozenset()
