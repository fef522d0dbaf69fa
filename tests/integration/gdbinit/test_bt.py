"""tdbg-bt: Python and C++ in one backtrace, in any gdb, without anything being called in the process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.interpreters import require_torch

COMMANDS = Path(__file__).parents[3] / "gdbinit" / "tdbg.py"
PROGRAM = """
import sys, threading, time, torch
def hook(gradient):
    open(sys.argv[1], "w").close()
    time.sleep(1000)
def waits():
    threading.Event().wait()
threading.Thread(target=waits, daemon=True).start()
def train():
    product = torch.ones(3, requires_grad=True) * 2
    product.register_hook(hook)
    product.sum().backward()
train()
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    ready = tmp_path_factory.mktemp("program") / "ready"
    child = subprocess.Popen([require_torch(), "-c", PROGRAM, str(ready)])
    deadline = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    yield child.pid
    assert child.poll() is None
    child.kill()
    child.wait()


@pytest.fixture(params=[Path(sys.executable).parent / "gdb", Path("/usr/bin/gdb")], ids=["wheel", "system"])
def gdb(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def told(gdb: Path, process: int, command: str) -> list[str]:
    before = ["-iex", "set auto-load off", "-iex", "set auto-solib-add off", "-iex", "set may-call-functions off"]
    done = subprocess.run(
        [str(gdb), "-nx", "-q", "-batch", *before, "-p", str(process), "-x", str(COMMANDS), "-ex", command],
        capture_output=True,
        text=True,
        timeout=100,
    )
    return (done.stdout + done.stderr).splitlines()


def test_python_and_cpp_stand_in_order(gdb: Path, process: int) -> None:
    frames = [line for line in told(gdb, process, "tdbg-bt") if line.startswith("#")]
    wanted = [
        "py  hook  ",
        "torch::autograd::PyFunctionTensorPreHook::operator()  libtorch_python.so",
        "torch::autograd::Engine::evaluate_function  libtorch_cpu.so",
        "torch::autograd::python::PythonEngine::execute  libtorch_python.so",
        "THPEngine_run_backward  libtorch_python.so",
        "py  _engine_run_backward  ",
        "py  Tensor.backward  ",
        "py  train  <string>:12",
        "py  <module>  <string>:13",
    ]
    places = [next(number for number, frame in enumerate(frames) if each in frame) for each in wanted]
    assert places == sorted(places)
    assert [int(frame[1:5]) for frame in frames] == list(range(len(frames)))


def test_all_threads(gdb: Path, process: int) -> None:
    lines = told(gdb, process, "tdbg-bt all")
    assert sum(line.startswith("thread ") for line in lines) >= 2
    assert any("py  waits  <string>:7" in line for line in lines)
    assert any("py  hook  <string>:5" in line for line in lines)


def test_the_interpreters_own_functions(gdb: Path, process: int) -> None:
    assert not any("_PyEval_EvalFrameDefault" in line for line in told(gdb, process, "tdbg-bt"))
    assert any("_PyEval_Vector" in line for line in told(gdb, process, "tdbg-bt -interpreter"))


def test_a_wrong_word(gdb: Path, process: int) -> None:
    assert "tdbg-bt does not know every: help tdbg-bt" in told(gdb, process, "tdbg-bt every")
