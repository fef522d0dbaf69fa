"""A source tree says itself how it is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg.build.checkout import read_checkout
from torchbench_dbg.errors import BuildError


def make(directory: Path, pyproject: str = "", setup: str | None = "", version: str = "2.6.0a0\n") -> Path:
    (directory / "pyproject.toml").write_text(pyproject)
    if setup is not None:
        (directory / "setup.py").write_text(setup)
    (directory / "version.txt").write_text(version)
    return directory


def test_up_to_2_13(tmp_path: Path) -> None:
    pyproject = (
        '[build-system]\nrequires = ["setuptools", "numpy"]\nbuild-backend = "setuptools.build_meta:__legacy__"\n'
    )
    found = read_checkout(make(tmp_path, pyproject, 'if arg == "--cmake-only":\n'))
    assert (found.version, found.layout, found.has_cmake_only) == ("2.6.0a0", "setuptools", True)
    assert found.build_requires == ("setuptools", "numpy")
    assert found.requirements is None


def test_scikit_build_core(tmp_path: Path) -> None:
    pyproject = '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
    found = read_checkout(make(tmp_path, pyproject + '[tool.scikit-build.editable]\nmode = "inplace"\n', None))
    assert (found.layout, found.has_cmake_only, found.editable_mode) == ("scikit-build-core", False, "inplace")


def test_a_backend_of_the_trees_own_around_scikit_build_core(tmp_path: Path) -> None:
    pyproject = (
        '[build-system]\nrequires = ["scikit-build-core>=0.10"]\nbuild-backend = "backend"\nbackend-path = ["tools"]\n'
    )
    make(tmp_path, pyproject)
    assert read_checkout(tmp_path).layout == "setuptools"
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "backend.py").write_text("")
    assert read_checkout(tmp_path).layout == "scikit-build-core"


def test_what_is_no_source_tree(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="is no directory"):
        read_checkout(tmp_path / "none")
    with pytest.raises(BuildError, match=r"neither setup\.py"):
        read_checkout(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[build-system\n")
    with pytest.raises(BuildError, match="can't be read"):
        read_checkout(tmp_path)


def test_a_version_that_is_none(tmp_path: Path) -> None:
    assert read_checkout(make(tmp_path, version="\x1b[31mred")).version is None
