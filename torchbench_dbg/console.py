"""The only owner of Rich consoles: results on stdout, talk on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console as Console  # exported: the type of what `stdout` and `stderr` give
    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment

Color = Literal["auto", "always", "never"]

_WIDTH_OF_A_FILE = 120  # columns, where stdout is no terminal

# What a terminal obeys instead of showing it (C0 and C1 controls), and what reorders the text around it (Unicode's
# bidirectional controls). Names in a saved trace and messages of exceptions are somebody else's text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(slots=True, kw_only=True)
class _Choices:
    color: Color | None = None  # None: nobody has chosen yet
    verbosity: int = 0
    ask: bool = True


_choices = _Choices()


def configure(*, color: Color | None = None, verbosity: int = 0, ask: bool = True) -> None:
    """Set by the command line, before the first output.

    `color` None: `prefer_color` may choose. `verbosity`: -q lowers it, -v raises it. `ask` False: see `may_ask`.
    """
    _choices.color, _choices.verbosity, _choices.ask = color, verbosity, ask
    _forget_consoles()


def prefer_color(color: Color) -> None:
    """What the settings say, where the command line says nothing."""
    if _choices.color is None:
        _choices.color = color
        _forget_consoles()


def may_ask() -> bool:
    """Whether somebody is there to answer a question: not with --no-input, and only at a terminal."""
    return _choices.ask and sys.stdin is not None and sys.stdin.isatty()


def _forget_consoles() -> None:
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
    color = _choices.color or "auto"
    plain = color == "never" or (color == "auto" and bool(os.environ.get("NO_COLOR")))
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_FILE
    return _console_class()(
        file=stream,
        width=width,
        force_terminal=True if color == "always" else None,
        # Without a colour system Rich writes no escape sequence at all: no bold, no links either.
        color_system=None if plain else "auto",
        no_color=False if color == "always" else None,  # False: Rich does not ask NO_COLOR
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


@lru_cache(maxsize=1)
def _console_class() -> type[Console]:
    """Rich is imported late: `tdbg --version` does without."""
    from rich.console import Console

    class VisibleControls(Console):
        """Shows control characters as pictures (ESC as ␛), so that no text can drive the terminal."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or not _CONTROLS.search(segment.text):
                    yield segment
                else:
                    yield segment._replace(text=_CONTROLS.sub(_picture, segment.text))

    return VisibleControls


def _picture(control: re.Match[str]) -> str:
    code = ord(control[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def print_text(text: str) -> None:
    """A result for programs, in JSON: never wrapped, never coloured; what stdout's encoding lacks is escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = re.sub("[^\x00-\x7f]", lambda character: json.dumps(character[0])[1:-1], text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def message(text: str) -> None:
    """Talk: not shown with -q."""
    if _choices.verbosity >= 0:
        stderr().print(text)


def redraw(text: str) -> None:
    """Talk that replaces itself, on a terminal: the one line that says how far a long work is; "" erases it."""
    if _choices.verbosity >= 0:
        width = max(1, stderr().width - 1)
        line = "".join(letter if letter.isprintable() else " " for letter in text)[:width]
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()


def detail(text: str) -> None:
    """Talk that only -v shows."""
    if _choices.verbosity > 0:
        stderr().print(text, style="dim")


def warn(text: str) -> None:
    """Something is wrong, and the work goes on."""
    if _choices.verbosity >= -1:
        _labelled("warning: ", "bold yellow", text)


def error(text: str, *, hint: str | None = None, docs: str | None = None) -> None:
    """Why the command failed, and what to do."""
    _labelled("error: ", "bold red", text)
    if hint:
        _labelled("hint: ", "bold cyan", hint)
    if docs:
        _labelled("more: ", "bold cyan", docs)


def _labelled(label: str, style: str, text: str) -> None:
    from rich.text import Text

    stderr().print(Text.assemble((label, style), text))
