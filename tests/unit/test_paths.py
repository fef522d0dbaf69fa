"""Where things are, and files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbench_dbg import paths


@pytest.mark.parametrize(
    ("variable", "directory"),
    [
        ("TDBG_CACHE_DIR", paths.cache_directory),
        ("TDBG_STATE_DIR", paths.state_directory),
        ("TDBG_CONFIG_DIR", paths.config_directory),
    ],
)
def test_a_variable_moves_a_directory(
    monkeypatch: pytest.MonkeyPatch, variable: str, directory: Callable[[], Path]
) -> None:
    monkeypatch.setenv(variable, "~/elsewhere")
    assert directory() == Path.home() / "elsewhere"
    monkeypatch.setenv(variable, "")
    assert directory().name == "tdbg"
    monkeypatch.delenv(variable)
    assert directory().name == "tdbg"


def test_the_code_of_other_processes_is_there() -> None:
    assert (paths.inferior_directory() / "session.py").is_file()
    assert (paths.gdbinit_directory() / "tdbg_backtrace.py").is_file()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.json"
    paths.write_atomically(file, "old")
    paths.write_atomically(file, "é")
    assert file.read_text(encoding="utf-8") == "é"
    assert os.listdir(file.parent) == ["file.json"]


def test_a_file_has_the_rights_that_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        paths.write_atomically(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("old")

    def fail(*_arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        paths.write_atomically(file, "new")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
