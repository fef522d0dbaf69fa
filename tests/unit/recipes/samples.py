"""Recipes and transcripts that the tests are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchbench_dbg.recipes.record import Exchange, Expectation, StageTranscript, Transcript

SCRIPT = "a = 1\nb = 2  # here\nprint(a + b)\n"
RECIPE = """
title = "one and two"
script = "sum.py"
teaches = "Sums."
[[stage]]
name = "first"
debugger = "pdb"
title = "the sum"
breaks = ["# here"]
[[stage.command]]
run = "p a"
note = "It is one."
expect = ["1"]
"""


def write(folder: Path, text: str = RECIPE, script: str = SCRIPT) -> Path:
    """A recipe's folder with its script; the path of recipe.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sum.py").write_text(script, encoding="utf-8")
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return file


def exchange(**changes: Any) -> Exchange:
    given: dict[str, Any] = {"debugger": "pdb", "prompt": "(Pdb) ", "command": "p a", "output": "1", "seconds": 0.5}
    return Exchange(**{**given, **changes})


def transcript(*exchanges: Exchange, **changes: Any) -> Transcript:
    stage = StageTranscript(name="first", title="the sum", debugger="pdb", exchanges=exchanges or (exchange(),))
    given: dict[str, Any] = {
        "recipe": "sum",
        "title": "one and two",
        "teaches": "Sums.",
        "watch": ("the result",),
        "then": ("tdbg trace 'a + b'",),
        "script": SCRIPT,
        "target": {"python": "3.11.7", "torch": "2.13.0", "executable": "/env/bin/python", "gdb": "18.1"},
        "status": "green",
        "stages": (stage,),
        "seconds": 1.5,
    }
    return Transcript(**{**given, **changes})


UNMET = Expectation(pattern="2", met=False)
