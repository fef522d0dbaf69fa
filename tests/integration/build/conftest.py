"""`tdbg build` on the small tree: real git, cmake, ninja, ccache and compilers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .trees import make_repository


@dataclass(frozen=True)
class Builder:
    """Runs `tdbg build` in a folder of its own, with state and compiler cache of its own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "TDBG_STATE_DIR": str(self.folder / "state"),
            "TDBG_CONFIG_DIR": str(self.folder / "config"),
            "COLUMNS": "500",  # no line is broken
            "CCACHE_DIR": str(self.folder / "ccache"),
            "RATTLER_CACHE_DIR": str(self.folder / "rattler"),
            # Submodules from a local path: git refuses them unless told otherwise.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
        }
        return {**os.environ, **own}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "torchbench_dbg", "build", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.folder,
            start_new_session=True,
        )

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        try:
            stdout, stderr = process.communicate(timeout=250)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def record(self, *arguments: str) -> dict[str, Any]:
        """The record of a build that ends well."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A git repository of the small tree in each layout, in a path with a space and a letter beyond ASCII."""
    folder = tmp_path_factory.mktemp("répos itory")
    found = {}
    for layout in ("setuptools", "scikit"):
        (folder / layout).mkdir()
        found[layout] = make_repository(folder / layout, layout)
    return found
