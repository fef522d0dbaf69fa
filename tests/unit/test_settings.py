"""Where settings are from, and what a project's file may not choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg import settings
from torchbench_dbg.errors import SettingsError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "below"
    folder.mkdir(parents=True)
    return folder


def load(project: Path, environment: dict[str, str] | None = None) -> tuple[settings.Settings, list[str]]:
    said: list[str] = []
    user = project.parents[1] / "config.toml"
    return settings.load(directory=project, environment=environment or {}, user_file=user, warn=said.append), said


def write(project: Path, *, user: str = "", tdbg: str = "", pyproject: str = "") -> None:
    (project.parents[1] / "config.toml").write_text(user)
    if tdbg:
        (project.parent / "tdbg.toml").write_text(tdbg)
    if pyproject:
        (project.parent / "pyproject.toml").write_text(pyproject)


def test_defaults(project: Path) -> None:
    loaded, said = load(project)
    assert (loaded["timeout"], loaded["dtype"], loaded["python"], said) == (60.0, "float32", None, [])
    assert loaded.by_name["timeout"].origin == "default"


def test_the_nearer_place_wins(project: Path) -> None:
    write(
        project,
        user="seed = 1\ntimeout = 1\ndtype = 'int8'",
        pyproject="[tool.tdbg]\nseed = 2\ntimeout = 2",
        tdbg="seed = 3",
    )
    loaded, said = load(project)
    assert (loaded["seed"], loaded["timeout"], loaded["dtype"]) == (3, 2.0, "int8")
    assert Path(loaded.by_name["seed"].origin).name == "tdbg.toml"
    assert said == []
    loaded, _ = load(project, {"TDBG_SEED": "4"})
    assert (loaded["seed"], loaded.by_name["seed"].origin) == (4, "TDBG_SEED")


def test_an_untrusted_project_chooses_no_program(project: Path) -> None:
    write(project, user="python = '/mine'", tdbg="python = '/evil'\ngdb = '/evil'\nseed = 7")
    loaded, said = load(project)
    assert (loaded["python"], loaded["gdb"], loaded["seed"]) == ("/mine", None, 7)
    assert "wants to choose python, gdb" in said[0]


@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_trusted_project_may(project: Path, way: str) -> None:
    write(project, user=f"trust = ['{project.parent}']" if way == "file" else "", tdbg="python = '/theirs'")
    loaded, said = load(project, {"TDBG_TRUST": str(project.parent)} if way == "variable" else {})
    assert (loaded["python"], said) == ("/theirs", [])


def test_an_unknown_key_gets_a_suggestion(project: Path) -> None:
    write(project, tdbg="timeuot = 3")
    _, said = load(project)
    assert said[0].endswith("there is no setting timeuot, did you mean timeout?")


@pytest.mark.parametrize(
    "text",
    ["seed = 'one'", "timeout = true", "color = 'red'", "timeout = 0", "max_stops = -1", "seed = "],
)
def test_a_wrong_value_is_an_error(project: Path, text: str) -> None:
    write(project, tdbg=text)
    with pytest.raises(SettingsError, match=r"tdbg\.toml"):
        load(project)


def test_a_wrong_variable_is_an_error(project: Path) -> None:
    with pytest.raises(SettingsError, match="TDBG_SEED=x is no whole number"):
        load(project, {"TDBG_SEED": "x"})


def test_another_tools_broken_pyproject_is_not_ours_to_judge(project: Path) -> None:
    write(project, pyproject="[tool.")
    assert load(project)[0]["seed"] == 0


def test_a_path_is_relative_to_its_file_and_a_bare_name_a_command(project: Path) -> None:
    write(project, user="python = 'python3.12'", tdbg="source = 'src/pytorch'")
    loaded, _ = load(project)
    assert loaded["source"] == str(project.parent / "src" / "pytorch")
    assert loaded["python"] == "python3.12"
    write(project, user="python = '~/env'\ngdb = '/usr/bin/gdb'")
    loaded, _ = load(project)
    assert (loaded["python"], loaded["gdb"]) == (str(Path.home() / "env"), "/usr/bin/gdb")
