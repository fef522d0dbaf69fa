"""`tdbg shell` hands over what was typed, and reads a stream where nobody sits at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torchbench_dbg.cli import app
from torchbench_dbg.commands import shell
from torchbench_dbg.commands.shell import ShellOptions

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TDBG_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[ShellOptions, Mapping[str, object]]] = []

    def run(options: ShellOptions, given: Mapping[str, object]) -> int:
        seen.append((options, given))
        return 6

    monkeypatch.setattr(shell, "run", run)
    result = runner.invoke(app, ["shell", "--setup", "m = 1", "--break", "f", "--tree", "--json", "--timeout", "2.5"])
    assert result.exit_code == 6
    options, given = seen[0]
    assert options == ShellOptions(setup="m = 1", breaks=("f",), view="tree", json=True)
    assert (given["timeout"], given["seed"]) == (2.5, None)


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--tree", "--stack"], "choose one"), (["--timeout", "0"], "a number of seconds above 0")]
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    result = runner.invoke(app, ["shell", *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
