"""`tdbg gdb` and `tdbg gdbinit`: what is started, and with what environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from torchbench_dbg import process
from torchbench_dbg.cli import app
from torchbench_dbg.commands import gdb as command
from torchbench_dbg.debugger.gdb import WHEEL, Gdb

runner = CliRunner()


class Replaced(BaseException):
    """The process would be another one now."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[list[str], dict[str, str]]]:
    seen: list[tuple[list[str], dict[str, str]]] = []

    def replace(argv: list[str], *, env: dict[str, str], cwd: Path | None = None) -> None:
        seen.append((argv, env))
        raise Replaced

    monkeypatch.setattr(process, "replace", replace)
    monkeypatch.setattr(command, "find_gdb", lambda path: Gdb(path=Path(path or "gdb"), version=(18, 1), origin="PATH"))
    monkeypatch.setenv("TDBG_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("TDBG_GDB", raising=False)
    return seen


def start(*arguments: str) -> Any:
    with pytest.raises(Replaced):
        runner.invoke(app, ["gdb", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--args", "python", "x.py", "--help", "--gdb", "y", "--", "-h"],
        ["-batch", "-ex", "info line"],
        ["-p", "12"],
        ["-nx", "-q", "program", "core"],
        [],
    ],
)
def test_the_arguments_are_gdbs_own(started: list[tuple[list[str], dict[str, str]]], arguments: list[str]) -> None:
    start(*arguments)
    argv, _ = started[0]
    source = argv.index(f"source {command.script()}")
    assert argv[0] == "gdb"
    assert argv[source - 1] == "-iex"
    assert argv[source + 1 :] == arguments


def test_another_gdb(started: list[tuple[list[str], dict[str, str]]]) -> None:
    start("--gdb", "/opt/gdb", "--args", "python")
    assert started[0][0][0] == "/opt/gdb"


def test_the_program_gets_its_environment_and_gdb_does_not(
    started: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/my modules")
    monkeypatch.delenv("PYTHONHOME", raising=False)
    monkeypatch.setenv("MINE", "1")
    start()
    argv, environment = started[0]
    assert "set environment PYTHONPATH = /my modules" in argv
    assert "unset environment PYTHONHOME" in argv  # the gdb of the wheel sets it for itself
    assert "PYTHONPATH" not in environment
    assert environment["MINE"] == "1"


def test_the_starter_of_the_wheel_is_a_python_script_that_needs_its_path(
    started: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_gdb", lambda _: Gdb(path=Path("gdb"), version=(18, 1), origin=WHEEL))
    monkeypatch.setenv("PYTHONPATH", "/my modules")
    start()
    assert started[0][1]["PYTHONPATH"] == "/my modules"


def test_gdbinit_prints_a_path_and_nothing_else_on_stdout() -> None:
    result = runner.invoke(app, ["gdbinit"])
    assert result.exit_code == 0
    assert result.stdout == f"{command.script()}\n"
    assert Path(result.stdout.strip()).is_file()
    assert "source PATH" in result.stderr
