"""Two traces are aligned by what is called, whatever stands in between."""

from __future__ import annotations

import dataclasses

from torchbench_dbg.trace.difference import TraceDifference, compare, from_json
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import Call, Function, Result, TraceRecord
from torchbench_dbg.trace.views import difference as view

from .samples import make_record

WRAPPER = Function(library=0, offset=32, symbol="_Z7wrapperv", name="at::wrapper_CPU_add()", layer="wrapper")
LOOP = "void c10::function_ref<void (char**)>::callback_fn<at::native::AVX2::VectorizedLoop2d<%s> >(long, char**)"


def difference(left: TraceRecord, right: TraceRecord, *, everything: bool = False) -> TraceDifference:
    return compare(TraceAnalysis(left), TraceAnalysis(right), sources=("A", "B"), everything=everything)


def with_calls(*calls: Call, functions: tuple[Function, ...] = (), **changes: object) -> TraceRecord:
    record = make_record()
    changes.setdefault("stops", ())
    return dataclasses.replace(record, calls=calls, functions=(*record.functions, *functions), **changes)  # type: ignore[arg-type]


def native(parent: int, function: int, keys: int | None = None) -> Call:
    return Call(parent=parent, kind="native", ref=function, thread=1, keys=keys)


PYTHON = Call(parent=-1, kind="python", ref=1, thread=1)


def text_of(found: TraceDifference) -> list[str]:
    return [line.plain for line in view.lines(found)]


def test_a_trace_equals_itself() -> None:
    found = difference(make_record(), make_record())
    assert found.is_empty
    assert found.same_result is True
    assert [row.mark for row in found.rows] == ["same"] * 3
    assert "the same calls, with the same dispatch keys, in the same order" in text_of(found)


def test_a_layer_in_between_is_one_row() -> None:
    right = with_calls(PYTHON, native(0, 0, 65537), native(1, 2), native(2, 1), functions=(WRAPPER,))
    found = difference(make_record(), right)
    assert [(row.mark, row.name, row.depth) for row in found.rows if row.mark != "same"] == [
        ("added", "at::wrapper_CPU_add()", 2)
    ]
    assert found.rows[-1].depth == 3  # as in the right trace
    assert "+     at::wrapper_CPU_add  wrapper" in text_of(found)


def test_other_dispatch_keys() -> None:
    right = with_calls(PYTHON, native(0, 0, 7), native(1, 1), key_sets={"65537": ("CPU",), "7": ("CPU", "AutogradCPU")})
    found = difference(make_record(), right)
    changed = [row for row in found.rows if row.mark == "changed"]
    assert [(row.left_keys, row.right_keys) for row in changed] == [(("CPU",), ("CPU", "AutogradCPU"))]
    assert "keys CPU → CPU, AutogradCPU" in " ".join(text_of(found))


def test_how_often_something_is_called() -> None:
    one = with_calls(PYTHON, native(0, 0), native(1, 1))
    three = with_calls(PYTHON, native(0, 0), native(1, 1), native(1, 1), native(1, 1))
    found = difference(one, three)
    assert [(row.mark, row.left_count, row.right_count) for row in found.rows][-1] == ("changed", 1, 3)
    assert any("×1 → ×3" in line for line in text_of(found))


def test_names_that_look_the_same_are_told_apart() -> None:
    sides = []
    for kind in ("float", "double"):
        loop = Function(library=0, offset=96, symbol="_Z1lv", name=LOOP % kind, layer="loop")
        sides.append(with_calls(PYTHON, native(0, 2), functions=(loop,), result=Result(text="", type="", digest=kind)))
    found = difference(*sides)
    assert found.same_result is False
    lines = text_of(found)
    assert "-   function_ref::callback_fn<AVX2::VectorizedLoop2d> of float  loop" in lines
    assert "+   function_ref::callback_fn<AVX2::VectorizedLoop2d> of double  loop" in lines


def test_helpers_are_compared_when_asked() -> None:
    helper = Function(library=0, offset=96, symbol="_Z1hv", name="c10::TensorImpl::layout() const", layer="core")
    left = with_calls(PYTHON, native(0, 0), native(1, 1))
    right = with_calls(PYTHON, native(0, 2), native(1, 0), native(2, 1), functions=(helper,))
    assert difference(left, right).is_empty
    assert [row.mark for row in difference(left, right, everything=True).rows].count("added") == 1


def test_far_equal_calls_are_counted_only() -> None:
    others = [dataclasses.replace(WRAPPER, offset=100 + n, name=f"at::wrapper_CPU_{n}()") for n in range(20)]
    calls = (PYTHON, *(native(0, 2 + n) for n in range(20)))
    left = with_calls(*calls, functions=tuple(others))
    right = with_calls(*calls, native(0, 1), functions=tuple(others))
    lines = text_of(difference(left, right))
    assert "  … 17 equal calls" in lines
    assert sum("wrapper_CPU_" in line for line in lines) == 3


def test_json() -> None:
    right = with_calls(PYTHON, native(0, 0, 65537), native(1, 2), native(2, 1), functions=(WRAPPER,))
    found = difference(make_record(), right)
    assert from_json(found.to_json()) == found
