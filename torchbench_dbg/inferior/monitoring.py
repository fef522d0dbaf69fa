"""Listens through sys.monitoring (Python 3.12 and later), on all threads of the interpreter."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any

from .names import CodeEntry, NameTable
from .stacks import Stacks

TOOL_NAME = "tdbg"

# 3 and 4 are reserved for nobody; 5, 2, 1 and 0 are meant for optimisers, profilers, coverage and debuggers.
TOOL_IDS = (4, 3, 5, 2, 1, 0)


def free_tool_id() -> int | None:
    """A tool id of sys.monitoring, taken for us; None before 3.12 or when all are in use."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return None
    for tool_id in TOOL_IDS:
        try:
            monitoring.use_tool_id(tool_id, TOOL_NAME)
        except ValueError:
            continue
        return tool_id
    return None


class MonitoringRecorder:
    """Callbacks of sys.monitoring; no event is raised for what a callback itself does."""

    def __init__(
        self,
        names: NameTable,
        line_codes: Sequence[types.CodeType],
        stacks: Stacks,
        tool_id: int,
    ) -> None:
        self._monitoring = vars(sys)["monitoring"]
        self._tool_id = tool_id
        self._line_codes = line_codes
        self._names = names
        self._stacks = stacks
        events = self._monitoring.events
        self._line_event = events.LINE
        self._mask = 0
        for event, callback in (
            (events.PY_START, self._on_enter),
            (events.PY_RESUME, self._on_enter),
            (events.PY_THROW, self._on_enter),
            (events.PY_RETURN, self._on_leave),
            (events.PY_YIELD, self._on_leave),
            (events.PY_UNWIND, self._on_leave),
            (events.CALL, self._on_call),
            (events.C_RETURN, self._on_c_leave),
            (events.C_RAISE, self._on_c_leave),
        ):
            self._mask |= event
            self._monitoring.register_callback(tool_id, event, callback)
        self._monitoring.register_callback(tool_id, events.LINE, self._on_line)

    def start(self) -> None:
        """Global events first: only setting local ones then re-instruments code whose frame is already
        running.
        """
        self._monitoring.set_events(self._tool_id, self._mask)
        for code in self._line_codes:
            self._monitoring.set_local_events(self._tool_id, code, self._line_event)

    def stop(self) -> None:
        """Code that runs on other threads may raise events until its next call; `Stacks` ignores them."""
        self._monitoring.set_events(self._tool_id, 0)
        for code in self._line_codes:
            self._monitoring.set_local_events(self._tool_id, code, 0)

    # Around a fork other threads are not heard for a moment; ThreadStack closes what they leave in between.
    pause = stop
    resume = start

    def trace_lines_of(self, frames: Sequence[types.FrameType]) -> None:
        """Nothing to do: line events belong to code, not to frames."""

    def _entry(self, code: types.CodeType) -> CodeEntry:
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return self._names.add_code(code, frame.f_globals if frame is not None else None)

    def _on_enter(self, code: types.CodeType, _offset: int, _exception: object = None) -> None:
        name = (self._names.codes.get(id(code)) or self._entry(code))[0]
        if name:
            self._stacks.this_thread().call(name, self._names.calling_line(sys._getframe(1)))

    def _on_leave(self, code: types.CodeType, _offset: int, _value: object) -> None:
        name = (self._names.codes.get(id(code)) or self._entry(code))[0]
        if name:
            self._stacks.this_thread().leave(name)

    def _on_call(self, code: types.CodeType, offset: int, function: object, _argument: object) -> None:
        if type(function) is types.FunctionType:
            return
        name, lines = self._names.codes.get(id(code)) or self._entry(code)
        if name:
            word = self._names.function_word(function)
            if word:
                self._stacks.this_thread().c_call(word, lines.get(offset) or _line_at(code, offset, lines))

    def _on_c_leave(self, code: types.CodeType, _offset: int, _function: object, _argument: object) -> None:
        if (self._names.codes.get(id(code)) or self._entry(code))[0]:
            self._stacks.this_thread().c_leave()

    def _on_line(self, code: types.CodeType, line: int) -> None:
        name = (self._names.codes.get(id(code)) or self._entry(code))[0]
        self._stacks.this_thread().line(name, line)


def _line_at(code: types.CodeType, offset: int, lines: dict[int, int]) -> int:
    """The line of a bytecode offset, remembered in `lines`."""
    for start, end, line in code.co_lines():  # type: ignore[attr-defined,unused-ignore]
        if start <= offset < end:
            lines[offset] = line or code.co_firstlineno
            return lines[offset]
    return code.co_firstlineno
