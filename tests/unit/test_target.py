"""Which interpreter is the target."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbench_dbg import target
from torchbench_dbg.errors import TargetError
from torchbench_dbg.target import find_target, has_torch


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TDBG_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def run_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """run_by(python, torch=...): tdbg runs in this interpreter, which has a torch or not."""

    def run(python: Path, *, torch: bool) -> None:
        monkeypatch.setattr(sys, "executable", str(python))
        monkeypatch.setattr(target, "_importable_here", lambda: torch)

    return run


def make_environment(folder: Path, *, torch: bool) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    if torch:
        (packages / "torch").mkdir()
        (packages / "torch" / "__init__.py").touch()
    return python


def test_an_explicit_interpreter_or_environment_wins(tmp_path: Path) -> None:
    python = make_environment(tmp_path / "env", torch=False)
    for given in (python, tmp_path / "env"):
        found = find_target(str(given), environment={"VIRTUAL_ENV": "/elsewhere"})
        assert (found.python, found.origin) == (python, "--python")


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_environment_with_torch_is_next(tmp_path: Path, variable: str) -> None:
    python = make_environment(tmp_path / "env", torch=True)
    found = find_target(None, environment={variable: str(tmp_path / "env")})
    assert found.python == python
    assert variable in found.origin


def test_an_environment_without_torch_is_passed_over(tmp_path: Path, run_by: Callable[..., None]) -> None:
    make_environment(tmp_path / "active", torch=False)
    own = make_environment(tmp_path / "own", torch=False)
    run_by(own, torch=True)
    assert find_target(None, environment={"VIRTUAL_ENV": str(tmp_path / "active")}).python == own


def test_a_registered_build_is_the_last_resort(tmp_path: Path, run_by: Callable[..., None]) -> None:
    own = make_environment(tmp_path / "own", torch=False)
    built = make_environment(tmp_path / "build", torch=True)
    run_by(own, torch=False)
    (tmp_path / "state" / "builds").mkdir(parents=True)
    (tmp_path / "state" / "builds" / "debug.json").write_text(json.dumps({"python": str(built)}))
    (tmp_path / "state" / "builds" / "broken.json").write_text("{")
    found = find_target(None, environment={})
    assert (found.python, found.origin) == (built, "build debug")


def test_with_no_torch_anywhere_the_first_is_returned(tmp_path: Path, run_by: Callable[..., None]) -> None:
    own = make_environment(tmp_path / "own", torch=False)
    run_by(own, torch=False)
    assert find_target(None, environment={}).python == own
    assert not has_torch(own)


def test_what_is_no_interpreter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    (tmp_path / "empty").mkdir()
    for given, said in (("/nowhere", "no interpreter"), ("text", "not executable"), ("empty", "without bin/python")):
        with pytest.raises(TargetError, match=said):
            find_target(str(tmp_path / given) if given[0] != "/" else given)


@pytest.mark.parametrize(
    "mark", ["torch.egg-link", "__editable__.torch-2.6.0a0.pth", "__editable___torch_2_6_finder.py"]
)
def test_an_editable_torch_is_seen(tmp_path: Path, mark: str) -> None:
    python = make_environment(tmp_path / "env", torch=False)
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for other in ("__editable__.torchvision-0.29.pth", "_editable_impl_torchbench_dbg.pth"):
        (packages / other).touch()
    assert not has_torch(python)
    (packages / mark).touch()
    assert has_torch(python)


def test_an_environment_that_sees_its_bases_packages(tmp_path: Path) -> None:
    base = make_environment(tmp_path / "base", torch=True)
    python = make_environment(tmp_path / "env", torch=False)
    settings = tmp_path / "env" / "pyvenv.cfg"
    settings.write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    assert not has_torch(python)
    settings.write_text(f"home = {base.parent}\ninclude-system-site-packages = true\n")
    assert has_torch(python)
