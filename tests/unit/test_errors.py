"""Exit codes and the one place where errors end."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg import errors
from torchbench_dbg.failures import guarded
from torchbench_dbg.streams import ReaderGone

README = Path(__file__).parents[2] / "README.md"


def test_every_error_has_an_exit_code_of_its_own() -> None:
    codes = [kind.exit_code for kind in errors.TdbgError.__subclasses__() if kind.__module__ == errors.__name__]
    assert sorted(codes) == list(range(2, 2 + len(codes)))


def test_readme_has_the_table_of_exit_codes() -> None:
    assert errors.exit_code_table() in README.read_text(encoding="utf-8")


def raising(error: BaseException) -> int:
    def command() -> int:
        raise error

    return guarded(command)


def test_a_known_error_gives_its_message_hint_and_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(errors.TargetError("it is [bold]broken[/]", hint="mend it", docs="docs/x.md")) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["error: it is [bold]broken[/]", "hint: mend it", "more: docs/x.md"]


def test_a_reader_that_left_is_141_and_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ReaderGone()) == 141
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_is_130() -> None:
    assert raising(KeyboardInterrupt()) == 130


def test_the_unexpected_writes_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TDBG_STATE_DIR", str(tmp_path))
    assert raising(ZeroDivisionError("seven by zero")) == 3
    (report,) = (tmp_path / "reports").iterdir()
    text = report.read_text()
    assert "ZeroDivisionError: seven by zero" in text
    assert "Traceback" in text
    said = capsys.readouterr().err
    assert "a fault in tdbg itself: ZeroDivisionError: seven by zero" in said
    assert "Traceback" not in said
