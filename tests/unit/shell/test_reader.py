"""What is one input of the shell."""

from __future__ import annotations

import pytest

from torchbench_dbg.shell.reader import inputs, is_nothing, is_whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a + b", True),
        ("(a +", False),
        ("(a +\nb)", True),
        ("for i in a:", False),
        ("for i in a:\n    i + 1", False),
        ("for i in a:\n    i + 1\n", True),
        ("if True: a + b", True),
        ("'''", False),
        ("a + \\", False),
        ("a b", True),  # an error that the target explains
        ("a\0b", True),
        (":tree", True),
        (":setup f(", True),
    ],
)
def test_whole_inputs(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_a_stream_of_inputs() -> None:
    lines = "a + b\n\n# a comment\n:tree\nfor i in a:\n    i\n\nF.relu(\na)\r\nlast(".splitlines(keepends=True)
    assert list(inputs(lines)) == ["a + b", ":tree", "for i in a:\n    i", "F.relu(\na)", "last("]


def test_nothing_is_no_input() -> None:
    assert is_nothing("  \n# x")
    assert not is_nothing("# x\na")
