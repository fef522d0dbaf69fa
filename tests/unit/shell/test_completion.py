"""What Tab offers."""

from __future__ import annotations

import pytest

from torchbench_dbg.shell.completion import complete


def ask(text: str) -> list[str]:
    return {"torch.nn.functional.rel": ["relu", "relu6"], "a.": ["T", "abs"]}.get(text, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":tr", ["tree"]),
        (":s", ["stack", "show", "save", "setup", "set"]),
        (":set de", ["device", "depth"]),
        (":set dtype float3", ["float32"]),
        (":set nothing x", []),
        ("torch.nn.functional.rel", ["relu", "relu6"]),
        ("F.add(a, a.", ["T", "abs"]),
        ("tor", ["torch"]),
        ("my", ["my_module"]),
        ("isinst", ["isinstance"]),
        ("lamb", ["lambda"]),
        ("1 + ", []),
    ],
)
def test_completion(text: str, words: list[str]) -> None:
    assert [word for word, _ in complete(text, ["my_module"], ask)] == words


def test_only_the_last_part_is_replaced() -> None:
    assert list(complete("b + torch.nn.functional.rel", [], ask)) == [("relu", 3), ("relu6", 3)]
