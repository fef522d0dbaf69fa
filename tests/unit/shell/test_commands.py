"""Commands are found by their names; who mistypes is helped."""

from __future__ import annotations

import pytest

from torchbench_dbg.errors import UsageError
from torchbench_dbg.shell.commands import COMMANDS, find


@pytest.mark.parametrize(("typed", "name"), [("tree", "tree"), ("t", "tree"), ("q", "quit"), ("set", "set")])
def test_a_name_or_its_beginning(typed: str, name: str) -> None:
    assert find(typed) is COMMANDS[name]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("treee", "did you mean :tree?"),
        ("sav", None),
        ("se", "did you mean :setup or :set?"),
        ("xyz", ":help lists the commands"),
        ("", ":help lists the commands"),
    ],
)
def test_did_you_mean(typed: str, hint: str | None) -> None:
    if hint is None:
        assert find(typed) is COMMANDS["save"]
        return
    with pytest.raises(UsageError) as caught:
        find(typed)
    assert caught.value.hint == hint
