"""The command line reaches the commands as it was typed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from torchbench_dbg import __version__, console
from torchbench_dbg.cli import app
from torchbench_dbg.commands import config, runs, show, trace
from torchbench_dbg.commands.options import TraceOptions, ViewOptions

runner = CliRunner()


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TDBG_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TraceOptions, Mapping[str, object]]]:
    seen: list[tuple[TraceOptions, Mapping[str, object]]] = []

    def run(options: TraceOptions, given: Mapping[str, object]) -> int:
        seen.append((options, given))
        return 5

    monkeypatch.setattr(trace, "run", run)
    return seen


def test_trace_options(traced: list[tuple[TraceOptions, Mapping[str, object]]]) -> None:
    arguments = "trace EXPR --break f --break g --hits 3 --tree --depth 4 --grep k --all --cold --json -o out.json"
    result = runner.invoke(app, [*arguments.split(), "--arg", "x", "--timeout", "2.5", "--no-save", "--setup", "s = 1"])
    assert result.exit_code == 5
    options, given = traced[0]
    assert options == TraceOptions(
        expression="EXPR",
        setup="s = 1",
        arguments=("x",),
        breaks=("f", "g"),
        hits=3,
        cold=True,
        json=True,
        output=Path("out.json"),
        save=False,
        view=ViewOptions(view="tree", depth=4, grep="k", show_all=True),
    )
    assert given["timeout"] == 2.5
    assert given["seed"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trcae"], "Did you mean 'trace'"),
        (["trace", "a", "--dpeth", "3"], "--depth"),
        (["trace", "a", "--hits", "0"], "greater than or equal to 1"),
        (["trace", "a", "--depth", "x"], "should be a valid integer"),
        (["trace", "a", "--tree", "--stack"], "choose one"),
        (["trace"], "nothing to trace"),
        (["trace", "a", "--line", "3"], "--line is a line of a script"),
        (["show"], "Missing argument"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], said: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_other_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(show, "run", lambda name, view, as_json: seen.append((name, view, as_json)) or 0)
    monkeypatch.setattr(runs, "run", lambda limit, as_json: seen.append((limit, as_json)) or 0)
    monkeypatch.setattr(config, "run", lambda origin, as_json: seen.append((origin, as_json)) or 0)
    for arguments in (["show", "last", "--stack"], ["runs", "--limit", "3", "--json"], ["config", "show", "--origin"]):
        assert runner.invoke(app, arguments).exit_code == 0
    assert seen == [("last", ViewOptions(view="stack"), False), (3, True), (True, False)]


def test_help_works_whatever_the_settings_are(tmp_path: Path) -> None:
    (tmp_path / "tdbg.toml").write_text("timeout = 'soon'")
    assert runner.invoke(app, ["trace", "--help"]).exit_code == 0
    result = runner.invoke(app, ["config", "show"])
    assert result.exit_code == 12
    assert "timeout = 'soon' is no number" in " ".join(result.output.split())


@pytest.mark.parametrize(("option", "asked"), [([], True), (["--no-input"], False)])
def test_no_input(monkeypatch: pytest.MonkeyPatch, option: list[str], asked: bool) -> None:
    seen: list[bool] = []

    def run(**_options: object) -> int:
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        seen.append(console.may_ask())
        return 0

    monkeypatch.setattr(runs, "run", run)
    assert runner.invoke(app, [*option, "runs"]).exit_code == 0
    assert seen == [asked]


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).output == f"tdbg {__version__}\n"


COMMANDS = "trace show diff shell runs gdb gdbinit recipes run debug crash core attach build rebuild builds env".split()


@pytest.mark.parametrize(
    "command", [[], *([name] for name in COMMANDS), ["config", "show"], ["recipes", "show"]], ids=" ".join
)
def test_help_fits_an_80_column_terminal(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = runner.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
