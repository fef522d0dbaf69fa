"""The only owner of Rich consoles: results on stdout, talk on stderr."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console as Console  # exported: the type of what `stdout` and `stderr` give

Color = Literal["auto", "always", "never"]

_WIDTH_OF_A_FILE = 120  # columns, where stdout is no terminal
_settings: dict[str, int | str] = {"color": "auto", "verbosity": 0}


def configure(*, color: Color = "auto", verbosity: int = 0) -> None:
    """Set by the command line, before the first output. `verbosity`: -q lowers it, -v raises it."""
    _settings.update(color=color, verbosity=verbosity)
    stdout.cache_clear()
    stderr.cache_clear()


@lru_cache(maxsize=1)
def stdout() -> Console:
    """Where results go."""
    return _console(sys.stdout)


@lru_cache(maxsize=1)
def stderr() -> Console:
    """Where messages go."""
    return _console(sys.stderr)


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    color = _settings["color"]
    terminal = stream.isatty()
    width = None if terminal or "COLUMNS" in os.environ else _WIDTH_OF_A_FILE
    return Console(
        file=stream,
        width=width,
        force_terminal=True if color == "always" else None,
        no_color=True if color == "never" or (color == "auto" and "NO_COLOR" in os.environ) else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def print_text(text: str) -> None:
    """A result that is plain text (JSON, a path): never wrapped, never coloured."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def message(text: str) -> None:
    """Talk: not shown with -q."""
    if int(_settings["verbosity"]) >= 0:
        stderr().print(text)


def detail(text: str) -> None:
    """Talk that only -v shows."""
    if int(_settings["verbosity"]) > 0:
        stderr().print(text, style="dim")


def warn(text: str) -> None:
    """Something is wrong, and the work goes on."""
    from rich.text import Text

    if int(_settings["verbosity"]) >= -1:
        stderr().print(Text.assemble(("warning: ", "bold yellow"), text))


def error(text: str, *, hint: str | None = None, docs: str | None = None) -> None:
    """Why the command failed, and what to do."""
    from rich.text import Text

    stderr().print(Text.assemble(("error: ", "bold red"), text))
    if hint:
        stderr().print(Text.assemble(("hint: ", "bold cyan"), hint))
    if docs:
        stderr().print(Text.assemble(("more: ", "bold cyan"), docs))
