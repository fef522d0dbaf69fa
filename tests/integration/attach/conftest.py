"""Programs to look at, and `tdbg attach`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.interpreters import require_torch

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def torch_python() -> str:
    return require_torch()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program and waits until it has made the file `ready`; it ends with the test."""
    processes: list[subprocess.Popen[str]] = []

    def run(python: str, program: Path, *arguments: str, ready: Path | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [python, str(program), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
        )
        processes.append(process)
        deadline = time.monotonic() + 60
        while ready is not None and not ready.exists() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def tdbg(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    own = {"TDBG_STATE_DIR": str(tmp_path / "state"), "TDBG_CONFIG_DIR": str(tmp_path / "config"), "COLUMNS": "200"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "torchbench_dbg", *arguments],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, **own},
        )

    return run
