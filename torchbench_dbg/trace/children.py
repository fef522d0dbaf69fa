"""The processes that the expression starts: followed so that none is left, and given clean code to run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from torchbench_dbg.trace import procfs, ptrace
from torchbench_dbg.trace.probes import ProbeSet, SetProtection
from torchbench_dbg.trace.processor import SharedProcessor


@dataclass(slots=True, kw_only=True)
class Children:
    """Threads and processes that are born while tracing.

    The kernel tells of a birth twice, in any order: the parent's event, and the child's own first stop.
    """

    pid: int
    probes: ProbeSet
    processor: SharedProcessor
    protector: Callable[[int], SetProtection]
    processes: set[int] = field(default_factory=set)
    _stopped: set[int] = field(default_factory=set)  # children whose parent's event is still to come
    _announced: dict[int, int] = field(default_factory=dict)  # child -> kind of its parent's event

    def on_birth(self, child: int, event: int) -> None:
        """The parent's event."""
        self.processor.free(child)
        if child in self._stopped:
            self._stopped.discard(child)
            self._adopt(child, event)
        else:
            self._announced[child] = event

    def on_first_stop(self, child: int) -> None:
        """The child's own."""
        if child in self.processes:
            ptrace.resume(child)
        elif child in self._announced:
            self._adopt(child, self._announced.pop(child))
        else:
            self._stopped.add(child)

    def _adopt(self, child: int, event: int) -> None:
        """A fork gets clean copies of the libraries; a vfork shares its parent's memory, and runs none of them."""
        if procfs.thread_group(child) != self.pid:
            self.processes.add(child)
            if event != ptrace.EVENT_VFORK:
                self.probes.clean_copy(child, self.protector(child))
        ptrace.resume(child)

    def kill(self) -> None:
        """End the processes that are left."""
        for child in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.processes.clear()
