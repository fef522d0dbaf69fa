"""What the tests of backtraces share: the gdbs, programs built here, and processes that stand still."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchbench_dbg.debugger.backtrace import Backtrace
from torchbench_dbg.debugger.gdb import Gdb, find_gdb
from torchbench_dbg.paths import gdbinit_directory

sys.path.insert(0, str(gdbinit_directory()))

HERE = Path(__file__).parent
FLAGS = {"debug": ["-g", "-O0"], "stripped": ["-O2", "-s", "-fomit-frame-pointer"]}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TDBG_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(params=["wheel", "system"])
def gdb(request: pytest.FixtureRequest, own_cache: None) -> Gdb:
    """The gdb of the wheel beside this interpreter (18.1), and the system's (13.1 on Debian 12)."""
    return require_gdb(request.param)


def require_gdb(which: str) -> Gdb:
    """One of the two; skips the test where it is not installed."""
    script = Path(sys.executable).parent / "gdb"
    path = str(script) if which == "wheel" else shutil.which("gdb", path="/usr/bin")
    if path is None or not Path(path).exists():
        pytest.skip(f"no {which} gdb is installed")
    return find_gdb(path)


@pytest.fixture(scope="session", params=sorted(FLAGS))
def build(request: pytest.FixtureRequest) -> str:
    """How the program is built: with debug information, or optimised and stripped."""
    return str(request.param)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The example program in every build, each with a library of its own."""
    folder = tmp_path_factory.mktemp("programs")
    found = {}
    for name, flags in FLAGS.items():
        target = folder / name
        target.mkdir()
        library = ["gcc", *flags, "-fPIC", "-shared", str(HERE / "library.c"), "-o", str(target / "libexample.so")]
        program = ["gcc", *flags, str(HERE / "program.c"), "-o", str(target / "program")]
        rest = [f"-L{target}", "-lexample", f"-Wl,-rpath,{target}", "-pthread"]
        subprocess.run(library, check=True)
        subprocess.run([*program, *rest], check=True)
        found[name] = target / "program"
    return found


class Stopped:
    """A process that has said `ready`, and was stopped as the tracer leaves one: by SIGSTOP, not traced."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.pid = self.process.pid
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_for("T")

    def state(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def wait_for(self, state: str) -> None:
        deadline = time.monotonic() + 10
        while self.state() != state and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.state() == state

    def code(self) -> dict[str, bytes]:
        """Everything executable in the process."""
        found = {}
        with open(f"/proc/{self.pid}/maps") as lines, open(f"/proc/{self.pid}/mem", "rb") as memory:
            for line in lines:
                if "x" in line.split()[1] and "/" in line:
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    memory.seek(start)
                    found[line] = memory.read(end - start)
        return found

    def changed(self, before: dict[str, bytes]) -> list[str]:
        """The bytes that are no longer as they were."""
        return [
            f"{line.split()[-1]}+{at:#x}: {old:#x} is {new:#x}"
            for line, code in self.code().items()
            if code != before[line]
            for at, (old, new) in enumerate(zip(before[line], code, strict=True))
            if old != new
        ]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def stopped() -> Iterator[Callable[..., Stopped]]:
    """stopped(COMMAND...) -> a process that stands still until the test is over."""
    started: list[Stopped] = []

    def start(*command: str) -> Stopped:
        started.append(Stopped(*command))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def names(backtrace: Backtrace) -> list[str]:
    """The functions of the frames without their arguments, innermost first."""
    return [(frame.function or "?").partition("(")[0] for frame in backtrace.frames]
