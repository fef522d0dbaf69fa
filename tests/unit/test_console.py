"""What reaches the terminal, and what must not."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest

from torchbench_dbg import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """terminal() makes stdout one, with colours; in the test's body, because pytest sets stdout again before that."""

    def open_one() -> Terminal:
        for variable in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        return stream

    return open_one


@pytest.mark.parametrize(
    ("color", "no_color", "coloured"),
    [
        (None, None, True),
        (None, "", True),
        (None, "1", False),
        ("auto", "1", False),
        ("always", "1", True),
        ("never", None, False),
    ],
)
def test_when_there_is_colour(
    terminal: Callable[[], Terminal],
    monkeypatch: pytest.MonkeyPatch,
    color: console.Color | None,
    no_color: str | None,
    coloured: bool,
) -> None:
    screen = terminal()
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    console.configure(color=color)
    console.stdout().print("text", style="bold red link https://example.org")
    assert ("\x1b" in screen.getvalue()) == coloured


def test_the_command_line_chooses_before_the_settings(terminal: Callable[[], Terminal]) -> None:
    screen = terminal()
    console.configure(color="never")
    console.prefer_color("always")
    console.stdout().print("text", style="red")
    console.configure()
    console.prefer_color("always")
    console.stdout().print("text", style="red")
    assert screen.getvalue() == "text\n\x1b[31mtext\x1b[0m\n"


def test_a_file_has_120_columns_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    console.configure()
    console.stdout().print("x " * 100, style="red")
    assert [len(line.rstrip()) for line in stream.getvalue().splitlines()] == [119, 79]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("red\x1b[31m", "red␛[31m"),
        ("\x9b2J", "\ufffd2J"),
        ("title\x1b]0;pwned\x1b\\", "title␛]0;pwned␛\\"),
        ("if \u202eeurt", "if \ufffdeurt"),
        ("delete\x7f", "delete␡"),
        ("[bold]kept[/] :smile:", "[bold]kept[/] :smile:"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_no_text_drives_the_terminal(terminal: Callable[[], Terminal], text: str, shown: str) -> None:
    screen = terminal()
    console.stdout().print(text)
    assert screen.getvalue() == shown + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_stays_json_in_every_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    value = ["é · 😀 λ", "\ud800 alone"]
    console.print_text(json.dumps(value, ensure_ascii=False))
    stream.flush()
    assert json.loads(stream.buffer.getvalue().decode(encoding)) == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("verbosity", "said"),
    [(1, "detail message warning error"), (0, "message warning error"), (-1, "warning error"), (-2, "error")],
)
def test_quiet_and_verbose(capsys: pytest.CaptureFixture[str], verbosity: int, said: str) -> None:
    console.configure(verbosity=verbosity)
    console.detail("detail")
    console.message("message")
    console.warn("of something")
    console.error("that failed")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert " ".join(line.split(":")[0] for line in printed.err.splitlines()) == said
