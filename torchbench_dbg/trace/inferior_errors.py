"""What it means when the inferior says that something raised, or dies."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from torchbench_dbg import errors


def died(when: str, code: int) -> errors.TargetError:
    return errors.TargetError(
        f"the target interpreter {describe_death(code)} {when}.",
        hint='see whether it works alone: PYTHON -X faulthandler -c "import torch"',
    )


def describe_death(code: int) -> str:
    """`was killed by SIGSEGV` or `ended with exit code 3`, of a Popen.returncode."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"


def error_of(event: dict[str, Any], python: Path) -> errors.TdbgError:
    """The error that a `raised` event means, with the place in the user's code."""
    stage, kind, message = event["stage"], event["type"], event["message"]
    if stage == "import":
        if kind == "ModuleNotFoundError" and "'torch'" in message:
            return errors.TargetError(
                f"{python} has no torch.",
                hint="choose an interpreter that has one: tdbg trace --python PATH ...",
            )
        return errors.TargetError(f"import torch fails in {python}: {kind}: {message}", hint="run it alone to see all")
    if kind == "LineNotReached":
        return errors.ExpressionError(message)
    where = {"compile": "the expression", "expression": "the expression", "warm": "the expression"}.get(
        stage, f"the {stage}"
    )
    if kind in ("SyntaxError", "IndentationError", "TabError"):
        lines = [f"{where} is not valid Python: {message}"]
        if event.get("text"):
            text = str(event["text"]).rstrip("\n")
            lines += [f"  {text}", "  " + " " * (max(1, event.get("offset") or 1) - 1) + "^"]
        return errors.ExpressionError("\n".join(lines))
    return errors.ExpressionError("\n".join([f"{where} raised {kind}: {message}", *_frames(event.get("traceback"))]))


def _frames(traceback: str | None) -> list[str]:
    """The traceback without its first and last line, which say nothing new."""
    return (traceback or "").rstrip().splitlines()[1:-1]
