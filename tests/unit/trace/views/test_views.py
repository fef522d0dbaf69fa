"""What a person sees, at two widths: a recorded backward pass drawn again and compared with its snapshot."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from torchbench_dbg import records
from torchbench_dbg.commands.options import ViewOptions
from torchbench_dbg.errors import UsageError
from torchbench_dbg.trace import views
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import TraceRecord, from_json

RECORD = Path(__file__).with_name("backward.json")


@pytest.fixture(scope="module")
def record() -> TraceRecord:
    return from_json(records.read(RECORD))


def drawn(record: TraceRecord, options: ViewOptions, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    views.show(record, options, console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "options",
    [
        ViewOptions(),
        ViewOptions(view="stack"),
        ViewOptions(view="tree", depth=6),
        ViewOptions(view="tree", grep="apply"),
    ],
    ids=["path", "stack", "tree", "grep"],
)
def test_view(record: TraceRecord, options: ViewOptions, width: int, snapshot: SnapshotAssertion) -> None:
    text = drawn(record, options, width)
    assert text == snapshot
    assert max(map(len, text.splitlines())) <= width


def test_nothing_matches(record: TraceRecord) -> None:
    assert "no call matches nonsense" in drawn(record, ViewOptions(view="tree", grep="nonsense"), 80)


def test_a_bad_expression_for_grep_is_a_usage_error(record: TraceRecord) -> None:
    with pytest.raises(UsageError, match="is not a regular expression"):
        drawn(record, ViewOptions(view="tree", grep="("), 80)


def test_kernels_and_nodes_of_the_recorded_backward(record: TraceRecord) -> None:
    analysis = TraceAnalysis(record)
    kernels = [
        (analysis.operator_name(use.operator_call), analysis.node_name(use.node_call) if use.node_call >= 0 else "")
        for use in analysis.kernels
    ]
    assert kernels == [
        ("aten::mul.Tensor", ""),
        ("aten::sum.dim_IntList", ""),
        ("aten::mul.Tensor", "MulBackward0"),
        ("aten::mul.Tensor", "MulBackward0"),
    ]
    assert [analysis.node_name(number) for number in analysis.node_calls] == [
        "SumBackward0",
        "MulBackward0",
        "AccumulateGrad",
        "AccumulateGrad",
    ]
    made = [analysis.operator_name(analysis.forward_call(number)) for number in analysis.node_calls[:2]]
    assert made == ["aten::sum", "aten::mul.Tensor"]
