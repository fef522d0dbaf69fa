"""How children are started, told without starting one. The rest is in tests/integration/test_process.py."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg import process
from torchbench_dbg.errors import TargetError


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, Any]]]:
    seen: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **options: seen.append((argv, options)))
    return seen


def test_each_child_has_a_session_of_its_own_and_no_stdin(started: list[tuple[list[str], dict[str, Any]]]) -> None:
    process.spawn(("python", "-c", "pass"), pass_fds=[5], env={"A": "b"}, cwd=Path("/"))
    argv, options = started[0]
    assert argv == ["python", "-c", "pass"]
    assert options["start_new_session"] is True
    assert options["stdin"] == subprocess.DEVNULL
    assert (options["pass_fds"], options["env"], options["cwd"]) == ((5,), {"A": "b"}, Path("/"))


@pytest.mark.parametrize(
    ("error", "said"),
    [(FileNotFoundError(2, "No such file or directory"), "No such file"), (ValueError("embedded null byte"), "null")],
)
def test_what_can_not_be_started_is_a_target_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(TargetError, match=f"tool can't be started: .*{said}"):
        process.spawn(["tool"])
