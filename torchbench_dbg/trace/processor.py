"""One processor for the tracer and the traced thread."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from torchbench_dbg.trace import procfs


@dataclass(slots=True)
class SharedProcessor:
    """While a thread is in C++, tracer and thread take turns, so one processor serves both.

    Otherwise each stop wakes an idle processor up, twice, and costs three times as much. Python code sees the
    affinity that it always had: it may count processors (DataLoader does).
    """

    _thread: int = 0
    _theirs: frozenset[int] = frozenset()
    _ours: frozenset[int] = frozenset()
    _one: frozenset[int] = frozenset()
    _tight: bool = False

    def share(self, tid: int) -> None:
        """Put the tracer on one processor that the traced thread may use; the thread follows when it enters C++."""
        with contextlib.suppress(OSError):
            theirs, ours = frozenset(os.sched_getaffinity(tid)), frozenset(os.sched_getaffinity(0))
            if common := theirs & ours:
                # Where the scheduler has put us: on a busy machine that is the freer one.
                here = procfs.processor_of(os.getpid())
                one = frozenset({here if here in common else max(common)})
                self._thread, self._theirs, self._ours, self._one = tid, theirs, ours, one
                os.sched_setaffinity(0, one)

    def enter_native(self, tid: int) -> None:
        """The thread leaves Python."""
        if tid == self._thread and not self._tight and self._theirs:
            self._set(tid, self._one)
            self._tight = True

    def leave_native(self, tid: int) -> None:
        """Python has control again."""
        if tid == self._thread and self._tight:
            self._set(tid, self._theirs)
            self._tight = False

    def free(self, tid: int) -> None:
        """A thread or process that was born on the shared processor gets the whole set."""
        if self._tight:
            self._set(tid, self._theirs)

    def give_back(self) -> None:
        """Everybody as before."""
        if self._theirs:
            self.leave_native(self._thread)
            self._set(0, self._ours)
            self._theirs = frozenset()

    @staticmethod
    def _set(tid: int, processors: frozenset[int]) -> None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(tid, processors)
