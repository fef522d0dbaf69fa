"""`tdbg core`: cores that gdb wrote of real processes, and files that are none."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchbench_dbg.crash.record import CrashRecord, from_json
from torchbench_dbg.debugger import gdb as debugger

from .conftest import environment

pytestmark = pytest.mark.integration

SCRIPT = """
import ctypes, os, sys, threading, time
library = ctypes.CDLL(os.environ['CRASHER'])
def wait():
    time.sleep(1000)
def main():
    threading.Thread(target=wait, name='waiter', daemon=True).start()
    time.sleep(0.2)
    if len(sys.argv) > 1:
        getattr(library, sys.argv[1])()
    print('ready', flush=True)
    time.sleep(1000)
main()
"""


def gdbs() -> list[str]:
    """The gdb of the wheel, and the system's where there is one."""
    return sorted({str(debugger.find_gdb(None).path), *filter(None, [shutil.which("gdb", path="/usr/bin")])})


def tdbg_core(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchbench_dbg", "core", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment(state), timeout=120)


def record_of(*words: str, state: Path) -> CrashRecord:
    done = tdbg_core(*words, "--json", state=state)
    assert done.returncode == 0, done.stderr
    return from_json(json.loads(done.stdout))


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory, plain_python: str, crasher: Path) -> dict[str, Path]:
    """A core of a crash by each way, written by gdb where the process got its signal."""
    folder = tmp_path_factory.mktemp("cores")
    (folder / "script.py").write_text(SCRIPT)
    cores = {}
    for path, way in zip((gdbs() * 3)[:3], ("null_pointer", "throw_in_thread", "free_wild"), strict=True):
        cores[way] = folder / f"core.{way}"
        subprocess.run(
            [path, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", f"generate-core-file {cores[way]}",
             "-ex", "kill", "--args", plain_python, "script.py", way],
            cwd=folder, env={**debugger.environment(), "CRASHER": str(crasher)}, capture_output=True, timeout=120,
        )  # fmt: skip
        assert cores[way].exists()
    return cores


@pytest.fixture(scope="module", params=gdbs())
def living(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, plain_python: str, crasher: Path
) -> Iterator[Path]:
    """A core of a process that goes on, as gcore makes it."""
    folder = tmp_path_factory.mktemp("living")
    (folder / "script.py").write_text(SCRIPT)
    child = subprocess.Popen(
        [plain_python, "script.py"], cwd=folder, env={**os.environ, "CRASHER": str(crasher)}, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    command = [request.param, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-p", str(child.pid)]
    subprocess.run(
        [*command, "-ex", f"generate-core-file {folder}/core", "-ex", "detach"], capture_output=True,
        env=debugger.environment(), timeout=120,
    )  # fmt: skip
    yield folder / "core"
    child.kill()
    child.wait()
    (folder / "core").unlink()


def test_core_of_a_crash(crashed: dict[str, Path], state: Path) -> None:
    (crash,) = record_of(str(crashed["null_pointer"]), state=state).crashes
    assert (crash.signal, crash.fault, crash.address, crash.failing_function) == (
        "SIGSEGV",
        "null",
        8,
        "value_of(Handle*)",
    )
    assert [diagnosis.code for diagnosis in crash.diagnoses] == ["C070"]
    python = [(frame.name, frame.line) for frame in crash.threads[0].frames[::-1] if frame.kind == "python"]
    assert python == [("<module>", 13), ("main", 10)]
    other = [frame.name for frame in crash.threads[1].frames if frame.kind == "python"]
    assert "wait" in other


def test_exception_and_message_are_in_the_core(crashed: dict[str, Path], state: Path) -> None:
    (crash,) = record_of(str(crashed["throw_in_thread"]), state=state).crashes
    assert (crash.exception_type, crash.exception_text) == ("std::runtime_error", "the thread's own error")
    (crash,) = record_of(str(crashed["free_wild"]), state=state).crashes
    assert crash.message == "free(): invalid pointer"
    assert [diagnosis.code for diagnosis in crash.diagnoses] == ["C067"]


def test_view_and_show(crashed: dict[str, Path], state: Path) -> None:
    done = tdbg_core(str(crashed["null_pointer"]), state=state)
    assert done.returncode == 0
    for said in ("segmentation fault", "value_of", "script.py:10", "a null pointer was used", "C070"):
        assert said in done.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "torchbench_dbg", "show", "last"], capture_output=True, text=True, env=environment(state)
    )
    assert shown.stdout == done.stdout


def test_core_of_a_living_process(living: Path, state: Path) -> None:
    record = record_of(str(living), state=state)
    (crash,) = record.crashes
    python = {tuple(frame.name for frame in thread.frames if frame.kind == "python") for thread in crash.threads}
    assert ("main", "<module>") in python
    assert any("wait" in names for names in python)
    assert crash.signal == "none"
    assert crash.diagnoses == ()
    assert "cause unknown" not in tdbg_core(str(living), state=state).stdout


def test_changed_and_missing_files_are_said(
    crashed: dict[str, Path], crasher: Path, state: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.so"
    shutil.copy2(crasher, kept)
    try:
        source = tmp_path / "other.c"
        source.write_text("int other;\n")
        subprocess.run(["gcc", "-shared", "-Wl,--build-id", str(source), "-o", str(crasher)], check=True)
        notes = " ".join(record_of(str(crashed["null_pointer"]), state=state).crashes[0].notes)
        assert "libcrasher.so is another file now" in notes
        crasher.unlink()
        crash = record_of(str(crashed["null_pointer"]), state=state).crashes[0]
        assert "libcrasher.so is not on this machine" in " ".join(crash.notes)
        assert [frame.name for frame in crash.threads[0].frames if frame.kind == "python"] == ["main", "<module>"]
    finally:
        shutil.copy2(kept, crasher)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"hello world, this is no core" * 10, "is no core file"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 100, "is a compressed file"),
        (b"\x7fELF\x01\x01" + b"\0" * 100, "not of a 64-bit"),
        (b"\x7fELF\x02\x01", "is damaged"),
    ],
)
def test_files_that_are_no_core(tmp_path: Path, state: Path, content: bytes, said: str) -> None:
    file = tmp_path / "core"
    file.write_bytes(content)
    done = tdbg_core(str(file), state=state)
    assert done.returncode == 17
    assert said in " ".join(done.stderr.split())


def test_programs_and_missing_files(tmp_path: Path, state: Path, crasher: Path) -> None:
    assert "a program or a library, not a core file" in " ".join(tdbg_core(str(crasher), state=state).stderr.split())
    done = tdbg_core(str(tmp_path / "nothing"), state=state)
    assert done.returncode == 17
    assert "No such file" in done.stderr
    assert tdbg_core(str(tmp_path), state=state).returncode == 17


@pytest.mark.parametrize("share", [0.002, 0.3, 0.9])
def test_core_that_is_cut_off(crashed: dict[str, Path], tmp_path: Path, state: Path, share: float) -> None:
    whole = crashed["null_pointer"].read_bytes()
    cut = tmp_path / "core"
    cut.write_bytes(whole[: int(len(whole) * share)])
    done = tdbg_core(str(cut), state=state)
    assert done.returncode in (0, 17)
    assert "cut off" in " ".join((done.stdout + done.stderr).split())


def test_core_of_the_kernel(crasher: Path, plain_python: str, tmp_path: Path, state: Path) -> None:
    """A real one, where the kernel writes cores into the directory; else its absence is checked."""
    import resource

    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [plain_python, "script.py", "null_pointer"], cwd=tmp_path, env={**os.environ, "CRASHER": str(crasher)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
    )  # fmt: skip
    assert done.returncode == -signal.SIGSEGV
    time.sleep(0.1)
    cores = [path for path in tmp_path.iterdir() if path.name.startswith("core")]
    assert bool(cores) == (not pattern.startswith(("|", "/")))
    for core in cores:
        (crash,) = record_of(str(core), state=state).crashes
        assert (crash.fault, crash.failing_function) == ("null", "value_of(Handle*)")
        assert [frame.name for frame in crash.threads[0].frames if frame.kind == "python"] == ["main", "<module>"]
