"""The operations of a line, from its text."""

from __future__ import annotations

import pytest

from torchbench_dbg.inferior.current_line import operators_at

SOURCE = """\
c = a + b * 2
loss = F.mse_loss(
    model(x), y
).mean()
loss.backward()
a += -b
for t in torch.unbind(a @ b):
    t[0] = x[1] < 3
def f(): return relu(
    ~x)
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, [("mul", "b * 2"), ("add", "a + b * 2")]),
        (
            2,
            [
                ("model", "model(x)"),
                ("mse_loss", "F.mse_loss( model(x), y )"),
                ("mean", "F.mse_loss( model(x), y ).mean()"),
            ],
        ),
        (
            3,
            [
                ("model", "model(x)"),
                ("mse_loss", "F.mse_loss( model(x), y )"),
                ("mean", "F.mse_loss( model(x), y ).mean()"),
            ],
        ),
        (5, [("backward", "loss.backward()")]),
        (6, [("neg", "-b"), ("add_", "a += -b")]),
        (7, [("matmul", "a @ b"), ("unbind", "torch.unbind(a @ b)")]),
        (8, [("setitem", "t[0]"), ("getitem", "x[1]"), ("lt", "x[1] < 3")]),
        (10, [("bitwise_not", "~x"), ("relu", "relu( ~x)")]),
        (99, []),
    ],
)
def test_operations_of_a_line(line: int, expected: list[tuple[str, str]]) -> None:
    found = operators_at(SOURCE.splitlines(keepends=True), line)
    assert [(each["name"], each["text"]) for each in found] == expected


def test_what_is_no_python_has_no_operations() -> None:
    assert operators_at(["a +\n"], 1) == []
