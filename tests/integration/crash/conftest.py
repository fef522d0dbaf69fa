"""What the tests of `tdbg crash` and `tdbg core` share: ways to die (crasher.cpp), built once, and how to run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchbench_dbg.crash.record import CrashRecord, from_json

from .. import interpreters

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str
    record: CrashRecord | None


Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def plain_python() -> str:
    """An interpreter that starts fast."""
    found = interpreters.find("3.11") or interpreters.find("3.12")
    assert found
    return found


@pytest.fixture(scope="session")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("crasher") / "libcrasher.so"
    flags = "-std=c++17 -g -O1 -w -D_GLIBCXX_ASSERTIONS -shared -fPIC -pthread".split()
    subprocess.run(["g++", *flags, str(HERE / "crasher.cpp"), "-o", str(built)], check=True)
    return built


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def run(tmp_path: Path, state: Path, plain_python: str, crasher: Path) -> Iterator[Run]:
    """Runs `tdbg crash OPTIONS -- WORDS` in a directory of its own."""

    def start(
        *words: str, options: tuple[str, ...] = (), python: str = plain_python, stdin: str = "", **env: str
    ) -> Ran:
        record = tmp_path / "record.json"
        command = [
            sys.executable,
            "-m",
            "torchbench_dbg",
            "crash",
            "--python",
            python,
            "-o",
            str(record),
            *options,
            "--",
        ]
        done = subprocess.run(
            [*command, *words],
            input=stdin.encode(),
            capture_output=True,
            cwd=tmp_path,
            env={**environment(state), "CRASHER": str(crasher), **env},
            timeout=120,
        )
        found = from_json(json.loads(record.read_text())) if record.exists() else None
        record.unlink(missing_ok=True)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), found)

    yield start
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("core")]


def environment(state: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TDBG_STATE_DIR": str(state / "state"),
        "TDBG_CACHE_DIR": str(state / "cache"),
        "COLUMNS": "100",
    }


@pytest.fixture
def die(tmp_path: Path) -> str:
    """A script that calls a function of crasher.cpp: `die.py NAME [NUMBER...]`."""
    (tmp_path / "die.py").write_text(
        "import ctypes, os, sys\n"
        "library = ctypes.CDLL(os.environ['CRASHER'])\n"
        "def die(name, *numbers):\n"
        "    getattr(library, name)(*[ctypes.c_long(int(number, 0)) for number in numbers])\n"
        "die(*sys.argv[1:])\n"
    )
    return "die.py"
