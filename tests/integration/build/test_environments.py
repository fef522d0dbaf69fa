"""Environments by every program that can be had here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .channel import VERSION, make_channel
from .conftest import Builder
from .trees import copy_tree

CONDA_PROGRAMS = [name for name in ("conda", "mamba", "micromamba") if shutil.which(name)]
MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_channel(tmp_path_factory.mktemp("channel"))


@pytest.mark.parametrize("manager", ["rattler", *CONDA_PROGRAMS])
def test_packages_of_a_channel(builder: Builder, channel: str, manager: str) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    arguments = ["--source", "tree", "--env-manager", manager, "--channel", channel, "--python-version", MINOR]
    record = builder.record(*arguments)
    assert record["status"] == "finished"
    metadata = json.loads(
        (builder.folder / "pytorch-build" / "env" / "conda-meta" / f"python-{VERSION}-0.json").read_text()
    )
    assert metadata["version"] == VERSION
    prefix = subprocess.check_output([record["python"], "-c", "import sys; print(sys.prefix)"], text=True)
    assert prefix == f"{builder.folder / 'pytorch-build' / 'env'}\n"


def test_a_python_that_the_channel_lacks(builder: Builder, channel: str) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    done = builder("--source", "tree", "--env-manager", "rattler", "--channel", channel, "--python-version", "3.2")
    assert done.returncode == 14
    assert "python 3.2" in " ".join(done.stdout.split())


def test_a_channel_that_is_none(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    nowhere = (builder.folder / "nowhere").as_uri()
    done = builder("--source", "tree", "--env-manager", "rattler", "--channel", nowhere)
    assert done.returncode == 14
    assert "ERROR: " in done.stdout


def test_a_conda_that_is_only_a_shell_function(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    for variable in ("CONDA_EXE", "MAMBA_EXE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CONDA_SHLVL", "1")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = builder("--source", "tree", "--env-manager", "conda")
    assert done.returncode == 14
    assert "conda is a shell function here and its program is not on PATH" in " ".join(done.stderr.split())
    # CONDA_EXE names the program: it is called with what conda takes.
    program = tmp_path / "conda"
    program.write_text('#!/bin/sh\necho "called with $*"\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("CONDA_EXE", str(program))
    done = builder("--source", "tree", "--env-manager", "conda", "--python-version", "3.12")
    assert done.returncode == 14
    wanted = f"called with create --yes --prefix {builder.folder / 'pytorch-build' / 'env'} --override-channels"
    assert wanted in " ".join(done.stdout.split())
    assert "python=3.12 pip cxx-compiler" in " ".join(done.stdout.split())


def test_auto_takes_what_is_there(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    script = builder("--source", "tree", "--dry-run")
    wanted = CONDA_PROGRAMS[0] if CONDA_PROGRAMS else "rattler_install"
    assert wanted in script.stdout
