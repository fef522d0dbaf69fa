"""Python events and C++ entries, merged into one call tree.

Each C++ entry carries the number of Python events that were written before it, so their order is exact. Whether
a Python call is made by Python or by C++ (a hook, `__torch_function__`) follows from the exits: a C++ function
that Python called is on the stack until its return was seen.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from torchbench_dbg.trace.livestack import Entry, Exit
from torchbench_dbg.trace.record import Call, CallKind

RING_HEADER = 64  # bytes; the first eight hold the count of events
_RECORD = struct.Struct("<IIII")

PYTHON_CALL, PYTHON_RETURN, C_CALL, C_RETURN, LINE = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class PythonEvent:
    """One record of the inferior's ring: kind, number of the code, line, kernel id of the thread."""

    kind: int
    code: int
    line: int
    thread: int


def read_ring(ring: bytes | mmap.mmap) -> list[PythonEvent]:
    """The events in a ring buffer of the inferior (layout: inferior/recorder.py)."""
    count = struct.unpack_from("<Q", ring)[0]
    fitting = (len(ring) - RING_HEADER) // _RECORD.size
    end = RING_HEADER + min(count, fitting) * _RECORD.size
    return [PythonEvent(*fields) for fields in _RECORD.iter_unpack(ring[RING_HEADER:end])]


@dataclass(slots=True)
class _Open:
    """A call on a thread's stack. `order` is the entry's for C++, -1 for Python."""

    call: int
    order: int
    line: int = 0  # where a Python frame is now


@dataclass(slots=True)
class _Merger:
    function_of: Callable[[Entry], int]
    calls: list[Call] = field(default_factory=list)
    stacks: dict[int, list[_Open]] = field(default_factory=dict)

    def python(self, event: PythonEvent) -> None:
        stack = self.stacks.setdefault(event.thread, [])
        if event.kind in (PYTHON_CALL, C_CALL):
            if stack and stack[-1].order < 0 and event.line:
                stack[-1].line = event.line
            kind: CallKind = "python" if event.kind == PYTHON_CALL else "c"
            self._push(stack, kind, event.code, event.thread, event.line)
        elif event.kind == LINE:
            for item in reversed(stack):
                if item.order < 0 and self.calls[item.call].kind == "python":
                    item.line = event.line
                    break
        else:
            self._pop_python(stack, "python" if event.kind == PYTHON_RETURN else "c")

    def _pop_python(self, stack: list[_Open], kind: str) -> None:
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].order < 0 and self.calls[stack[position].call].kind == kind:
                del stack[position:]
                return

    def native(self, entry: Entry) -> None:
        stack = self.stacks.setdefault(entry.tid, [])
        parent = next((place for place in range(len(stack) - 1, -1, -1) if stack[place].order == entry.parent >= 0), -1)
        # C++ frames above the parent have returned; a Python frame above it is a callback that is still running.
        stack[parent + 1 :] = [item for item in stack[parent + 1 :] if item.order < 0]
        if entry.parent < 0:
            stack[:] = [item for item in stack if item.order < 0]
        line = stack[-1].line if stack and stack[-1].order < 0 else 0
        self._push(
            stack,
            "native",
            self.function_of(entry),
            entry.tid,
            line,
            order=entry.order,
            keys=entry.keys,
            tail=entry.tail_call,
        )

    def exit(self, leaving: Exit) -> None:
        stack = self.stacks.get(leaving.tid, [])
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].order == leaving.order:
                del stack[position:]
                return

    def _push(
        self,
        stack: list[_Open],
        kind: CallKind,
        ref: int,
        thread: int,
        line: int,
        *,
        order: int = -1,
        keys: int | None = None,
        tail: bool = False,
    ) -> None:
        parent = stack[-1].call if stack else -1
        self.calls.append(Call(parent=parent, kind=kind, ref=ref, thread=thread, line=line, keys=keys, tail=tail))
        stack.append(_Open(call=len(self.calls) - 1, order=order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The calls, and per thread the calls that were open at the end (outermost first) with their current line."""

    calls: tuple[Call, ...]
    call_of_order: dict[int, int]
    open_calls: dict[int, tuple[tuple[int, int], ...]]


def merge(
    events: Sequence[PythonEvent],
    timeline: Sequence[Entry | Exit],
    *,
    function_of: Callable[[Entry], int],
) -> Merged:
    """One tree of all calls, in order of time; `function_of` numbers an entry's function in the record."""
    merger = _Merger(function_of=function_of)
    call_of_order: dict[int, int] = {}
    position = 0
    for item in timeline:
        for event in _until(events, position, item.python_events):
            merger.python(event)
        position = max(position, item.python_events)
        if isinstance(item, Exit):
            merger.exit(item)
        else:
            call_of_order[item.order] = len(merger.calls)
            merger.native(item)
    for event in events[position:]:
        merger.python(event)
    open_calls = {tid: tuple((item.call, item.line) for item in stack) for tid, stack in merger.stacks.items()}
    return Merged(calls=tuple(merger.calls), call_of_order=call_of_order, open_calls=open_calls)


def _until(events: Sequence[PythonEvent], start: int, end: int) -> Iterator[PythonEvent]:
    yield from events[start : max(start, end)]
