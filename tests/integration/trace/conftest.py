"""What the tests of tracing share: a target with torch, a cache for all workers, and a way to trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.trace.engine import TraceEngine, TraceRequest
from torchbench_dbg.trace.record import TraceRecord

from ..interpreters import require_torch

Trace = Callable[..., TraceRecord]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def torch_python() -> Path:
    return Path(require_torch())


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One symbol cache for all workers: two that write at once are a test of their own."""
    return tmp_path_factory.getbasetemp().parent / "tdbg-cache"


@pytest.fixture(scope="session")
def trace(torch_python: Path, cache: Path) -> Trace:
    """trace(EXPR, **request) -> record; warnings fail the test."""

    def run(expression: str, **options: Any) -> TraceRecord:
        options = {"python": torch_python, "cache_directory": cache, **options}
        return TraceEngine(request=TraceRequest(expression=expression, **options), warn=pytest.fail).run()

    return run


class Tdbg:
    """Runs the command line as a person would."""

    def __init__(self, python: Path, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "TDBG_CACHE_DIR": str(cache),
            "TDBG_STATE_DIR": str(folder / "state"),
            "TDBG_CONFIG_DIR": str(folder / "config"),
            "TDBG_PYTHON": str(python),
            "TDBG_TEST_MARK": str(folder),  # inherited by all that it starts, so that none stays unseen
            "COLUMNS": "120",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "torchbench_dbg", *arguments]

    def __call__(
        self, *arguments: str, environment: dict[str, str] | None = None, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            errors="replace",
            env={**self.environment, **(environment or {})},
            cwd=self.folder,
            input=input,
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def survivors(self) -> list[int]:
        """Processes that were started by this tdbg and still run."""
        mark = f"TDBG_TEST_MARK={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found


@pytest.fixture
def tdbg(torch_python: Path, tmp_path: Path, cache: Path) -> Tdbg:
    return Tdbg(torch_python, tmp_path, cache)


@pytest.fixture(scope="session")
def extension(torch_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example extension, built with debug information."""
    folder = tmp_path_factory.mktemp("extension")
    environment = {**os.environ, "PATH": f"{torch_python.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [str(torch_python), str(HERE / "extension" / "build.py"), str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.split()[-1])
