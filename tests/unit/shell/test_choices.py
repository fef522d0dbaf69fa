"""`:set`, and the request that the choices make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.commands.options import ViewOptions
from torchbench_dbg.errors import UsageError
from torchbench_dbg.shell.choices import Choices, shown, with_setting

CHOICES = Choices(python=Path("/python"), device="cpu", dtype="float32", seed=0, timeout=60.0, max_stops=100)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("device", "cuda", "cuda"),
        ("seed", "7", 7),
        ("timeout", "0.5", 0.5),
        ("depth", "3", 3),
        ("depth", "off", None),
        ("grep", "add|mul", "add|mul"),
        ("all", "on", True),
        ("view", "tree", "tree"),
    ],
)
def test_a_setting_that_is_set(name: str, text: str, value: Any) -> None:
    changed = with_setting(CHOICES, name, text)
    assert getattr(changed, name) == value
    assert shown(changed, name) == text


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("dvice", "cpu", "did you mean device?"),
        ("zzz", "1", "there are device, dtype"),
        ("seed", "x", "a whole number is expected"),
        ("timeout", "0", "seconds above 0"),
        ("timeout", "nan", "seconds above 0"),
        ("depth", "0", "levels of the tree"),
        ("grep", "(", "a regular expression"),
        ("all", "yes", "on or off"),
        ("view", "tre", "did you mean tree?"),
    ],
)
def test_what_can_not_be_set(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_setting(CHOICES, name, text)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_the_request() -> None:
    choices = with_setting(CHOICES, "all", "on")
    request = Choices(**{**_fields(choices), "setup": ("m = 1", "n = 2"), "breaks": ("f",)}).request("m + n")
    assert (request.expression, request.setup, request.breaks) == ("m + n", "m = 1\nn = 2", ("f",))
    assert request.include_noise
    assert choices.request("a").setup is None
    assert choices.view_options("tree") == ViewOptions(view="tree", show_all=True)


def _fields(choices: Choices) -> dict[str, Any]:
    return {name: getattr(choices, name) for name in Choices.__slots__}
