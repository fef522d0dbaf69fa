"""Listens through sys.setprofile and sys.settrace (before Python 3.12), on this thread and on those that
`threading` starts meanwhile.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from .names import NameTable
from .stacks import Stacks, ThreadStack

Hook = Callable[[types.FrameType, str, Any], Any]


class ProfilingRecorder:
    """One profile function per thread. Code that sets its own profile or trace function meanwhile
    displaces it.
    """

    def __init__(self, names: NameTable, line_codes: Sequence[types.CodeType], stacks: Stacks) -> None:
        self._names = names
        self._line_ids = {id(code) for code in line_codes}
        self._line_codes = line_codes
        self._stacks = stacks
        self._local = threading.local()
        self._active = False
        self._before: list[Any] = [None, None, None, None]

    def start(self) -> None:
        """Listen on this thread and on threads to come."""
        self._active = True
        self._before = [
            sys.getprofile(),
            sys.gettrace(),
            getattr(threading, "_profile_hook", None),
            getattr(threading, "_trace_hook", None),
        ]
        threading.setprofile(self._first_event)
        profile = self._profile_function(self._stacks.this_thread())
        if self._line_codes:
            threading.settrace(self._trace)
            sys.settrace(self._trace)
        sys.setprofile(profile)

    def stop(self) -> None:
        """Stop on this thread at once; other threads take their function off at their next event."""
        profile, trace, thread_profile, thread_trace = self._before
        sys.setprofile(profile)
        sys.settrace(trace)
        self._active = False
        threading.setprofile(thread_profile)
        threading.settrace(thread_trace)

    def pause(self) -> None:
        """Stop listening on this thread only."""
        self._local.paused = sys.getprofile(), sys.gettrace()
        sys.setprofile(None)
        sys.settrace(None)

    def resume(self) -> None:
        """Undo `pause`."""
        profile, trace = self._local.paused
        sys.settrace(trace)
        sys.setprofile(profile)

    def trace_lines_of(self, frames: Sequence[types.FrameType]) -> None:
        """Have line events for frames that run already: for others `_trace` decides at the call."""
        for frame in frames:
            if id(frame.f_code) in self._line_ids:
                frame.f_trace = self._trace_line

    def _first_event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        """Profile function of a new thread, until its first event."""
        profile = self._profile_function(self._stacks.this_thread())
        sys.setprofile(profile)
        profile(frame, event, argument)

    def _profile_function(self, stack: ThreadStack) -> Hook:
        codes, add_code, function_word = self._names.codes, self._names.add_code, self._names.function_word
        calling_line = self._names.calling_line
        call, leave, c_call, c_leave = stack.call, stack.leave, stack.c_call, stack.c_leave

        def profile(frame: types.FrameType, event: str, argument: Any) -> None:
            code = frame.f_code
            name = (codes.get(id(code)) or add_code(code, frame.f_globals))[0]
            if not name:
                return
            if not self._active:
                sys.setprofile(None)
            elif event == "call":
                call(name, calling_line(frame))
            elif event == "return":
                leave(name)
            elif event == "c_call":
                word = function_word(argument)
                if word:
                    c_call(word, frame.f_lineno or code.co_firstlineno)
            else:
                c_leave()

        return profile

    def _trace(self, frame: types.FrameType, _event: str, _argument: Any) -> Hook | None:
        return self._trace_line if id(frame.f_code) in self._line_ids else None

    def _trace_line(self, frame: types.FrameType, event: str, _argument: Any) -> Hook | None:
        if not self._active:
            return None
        if event == "line":
            code = frame.f_code
            name = (self._names.codes.get(id(code)) or self._names.add_code(code, frame.f_globals))[0]
            self._stacks.this_thread().line(name, frame.f_lineno)
        return self._trace_line
