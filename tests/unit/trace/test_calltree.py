"""Merging of Python events and C++ entries."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

from torchbench_dbg.trace.calltree import (
    C_CALL,
    C_RETURN,
    LINE,
    PYTHON_CALL,
    PYTHON_RETURN,
    RING_HEADER,
    PythonEvent,
    merge,
    read_ring,
)
from torchbench_dbg.trace.livestack import Entry, Exit

MAIN, WORKER = 100, 101


def entry(order: int, parent: int, python_events: int, *, tid: int = MAIN, name: int | None = None) -> Entry:
    probe: Any = SimpleNamespace(function=order if name is None else name)
    return Entry(
        order=order,
        tid=tid,
        probe=probe,
        stack_pointer=0,
        return_address=0,
        parent=parent,
        tail_call=False,
        python_events=python_events,
        keys=None,
    )


def function_of(item: Entry) -> int:
    number: int = item.probe.function  # type: ignore[attr-defined]
    return number


def tree(events: list[PythonEvent], timeline: list[Entry | Exit]) -> list[tuple[str, int, int]]:
    merged = merge(events, timeline, function_of=function_of)
    return [(call.kind, call.ref, call.parent) for call in merged.calls]


def test_entries_between_python_events_are_children_of_the_running_python_function() -> None:
    events = [
        PythonEvent(PYTHON_CALL, 1, 0, MAIN),
        PythonEvent(PYTHON_CALL, 2, 3, MAIN),
        PythonEvent(PYTHON_RETURN, 2, 0, MAIN),
    ]
    timeline: list[Entry | Exit] = [entry(0, -1, 1), Exit(0, MAIN, 1), entry(1, -1, 2), entry(2, 1, 2)]
    assert tree(events, timeline) == [
        ("python", 1, -1),
        ("native", 0, 0),
        ("python", 2, 0),
        ("native", 1, 2),
        ("native", 2, 3),
    ]


def test_python_called_by_cpp_is_a_child_of_the_cpp_function() -> None:
    """A hook: Python -> C++ 0 -> Python 2 -> C++ 1, which returns before C++ 0 does."""
    events = [
        PythonEvent(PYTHON_CALL, 1, 0, MAIN),
        PythonEvent(PYTHON_CALL, 2, 0, MAIN),
        PythonEvent(PYTHON_RETURN, 2, 0, MAIN),
    ]
    timeline: list[Entry | Exit] = [entry(0, -1, 1), entry(1, 0, 2), Exit(1, MAIN, 2), entry(2, 0, 3)]
    assert tree(events, timeline) == [
        ("python", 1, -1),
        ("native", 0, 0),
        ("python", 2, 1),
        ("native", 1, 2),
        ("native", 2, 1),
    ]


def test_python_called_after_cpp_returned_is_a_child_of_python() -> None:
    events = [PythonEvent(PYTHON_CALL, 1, 0, MAIN), PythonEvent(PYTHON_CALL, 2, 0, MAIN)]
    timeline: list[Entry | Exit] = [entry(0, -1, 1), Exit(0, MAIN, 1)]
    assert tree(events, timeline)[2] == ("python", 2, 0)


def test_threads_have_stacks_of_their_own() -> None:
    timeline: list[Entry | Exit] = [
        entry(0, -1, 0),
        entry(1, -1, 0, tid=WORKER),
        entry(2, 0, 0),
        entry(3, 1, 0, tid=WORKER),
    ]
    assert tree([], timeline) == [("native", 0, -1), ("native", 1, -1), ("native", 2, 0), ("native", 3, 1)]


def test_calls_know_the_line_of_their_python_caller() -> None:
    events = [
        PythonEvent(PYTHON_CALL, 1, 0, MAIN),
        PythonEvent(LINE, 1, 7, MAIN),
        PythonEvent(C_CALL, 2, 8, MAIN),
        PythonEvent(C_RETURN, 2, 0, MAIN),
    ]
    merged = merge(
        events, [entry(0, -1, 2), Exit(0, MAIN, 2), entry(1, -1, 3), entry(2, -1, 4)], function_of=function_of
    )
    by_ref = {(call.kind, call.ref): call for call in merged.calls}
    assert by_ref["native", 0].line == 7
    assert by_ref["c", 2].line == 8
    assert merged.calls[by_ref["native", 1].parent].kind == "c"
    assert by_ref["native", 2].line == 8
    assert merged.open_calls[MAIN][0] == (0, 8)


def test_unwinding_closes_what_stands_above() -> None:
    """An exception leaves two Python functions at once: one return event closes the calls above it too."""
    events = [
        PythonEvent(PYTHON_CALL, 1, 0, MAIN),
        PythonEvent(C_CALL, 3, 2, MAIN),
        PythonEvent(PYTHON_RETURN, 1, 0, MAIN),
        PythonEvent(PYTHON_CALL, 4, 0, MAIN),
    ]
    assert tree(events, []) == [("python", 1, -1), ("c", 3, 0), ("python", 4, -1)]


def test_ring_is_read_up_to_its_count_and_never_past_its_end() -> None:
    records = struct.pack("<IIII", 1, 2, 3, 4) + struct.pack("<IIII", 5, 6, 7, 8)
    header = lambda count: struct.pack("<QQ", count, 0).ljust(RING_HEADER, b"\0")  # noqa: E731
    assert read_ring(header(1) + records) == [PythonEvent(1, 2, 3, 4)]
    assert read_ring(header(99) + records) == [PythonEvent(1, 2, 3, 4), PythonEvent(5, 6, 7, 8)]
