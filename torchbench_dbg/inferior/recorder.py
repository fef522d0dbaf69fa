"""Records the Python calls, C function calls and lines between `start` and `stop`, on every thread that
Python can see.

Guarantees for each thread: every call is followed by exactly one return, properly nested, whatever
generators and exceptions do; a return whose call came before `start` is not recorded; calls that are
open at `stop` are closed by it. Frames of this directory never appear.

Python 3.12 and later: `monitoring.py`; all threads are seen. Before, and where every tool id of
sys.monitoring is taken: `profiling.py`; threads that were already running at `start`, or that C++
created (autograd's device threads), are missing there. In a child made by fork nothing is recorded.
"""

from __future__ import annotations

import os
import types
from collections.abc import Sequence

from .monitoring import MonitoringRecorder, free_tool_id
from .names import NameTable
from .profiling import ProfilingRecorder
from .ring import Ring
from .stacks import Stacks


class Recorder:
    """Chooses the way to listen and switches it on and off."""

    def __init__(self, ring: Ring, names: NameTable, line_codes: Sequence[types.CodeType]) -> None:
        self._stacks = Stacks(ring.write)
        self._names = names
        tool_id = free_tool_id()
        self._listener = (
            ProfilingRecorder(names, line_codes, self._stacks)
            if tool_id is None
            else MonitoringRecorder(names, line_codes, self._stacks, tool_id)
        )
        self._running = False
        os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork_in_parent)

    def open_frames(self, frame: types.FrameType | None) -> None:
        """Record the calls that are already open on this thread, outermost first, each with the line
        that it has reached.

        For a region that begins in the middle of a script: without them its Python stack would be unknown.
        """
        frames = []
        while frame is not None:
            if self._names.add_code(frame.f_code, frame.f_globals)[0]:
                frames.append(frame)
            frame = frame.f_back
        stack = self._stacks.this_thread()
        for opened in reversed(frames):
            stack.call(self._names.codes[id(opened.f_code)][0], self._names.calling_line(opened))
            stack.line(self._names.codes[id(opened.f_code)][0], opened.f_lineno)
        self._listener.trace_lines_of(frames)

    def start(self) -> None:
        """Begin to record; the first thing recorded is what the caller does next, as its own frames are
        not shown.
        """
        self._running = True
        self._listener.start()

    def stop(self) -> None:
        """End recording on all threads and close the calls that are open."""
        self._listener.stop()
        self._running = False
        self._stacks.close()

    def _before_fork(self) -> None:
        if self._running:
            self._listener.pause()

    def _after_fork_in_parent(self) -> None:
        if self._running:
            self._listener.resume()
