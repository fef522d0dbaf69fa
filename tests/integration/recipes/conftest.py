"""What the tests of recipes share: tdbg on a target with torch, and small recipes that need no torch to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..trace.conftest import Tdbg, cache, tdbg, torch_python  # noqa: F401

SCRIPT = "import time\na = 1\nb = 2\ntime.sleep(0)  # here\nprint('sum', a + b)\n"
HEAD = 'title = "one and two"\nscript = "sum.py"\nteaches = "Sums."\n'


@pytest.fixture
def recipe(tdbg: Tdbg) -> Callable[..., Path]:  # noqa: F811
    """recipe(STAGES, script=...) -> the recipe's file, in the directory in which tdbg runs."""

    def write(stages: str, script: str = SCRIPT) -> Path:
        folder = tdbg.folder / ".tdbg" / "recipes" / "mine"
        folder.mkdir(parents=True)
        (folder / "sum.py").write_text(script)
        (folder / "recipe.toml").write_text(HEAD + stages)
        return folder / "recipe.toml"

    return write


def stage(debugger: str, *commands: tuple[str, str | None], name: str = "only", breaks: str = "[]") -> str:
    """One stage in TOML; of each command what is typed, and what is expected or None."""
    text = f'[[stage]]\nname = "{name}"\ndebugger = "{debugger}"\ntitle = "a stage"\nbreaks = {breaks}\n'
    for typed, expected in commands:
        text += f"[[stage.command]]\nrun = '{typed}'\n"
        text += f"expect = ['{expected}']\n" if expected else ""
    return text
