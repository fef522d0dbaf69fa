"""tdbg-bt: Python and C++ in one backtrace, in any gdb, without anything being called in the process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.interpreters import VERSIONS as VERSIONS_TO_FIND
from tests.integration.interpreters import find, require_torch
from torchbench_dbg.paths import gdbinit_directory

sys.path.insert(0, str(gdbinit_directory()))
from tdbg_merging import short_path

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


def told(gdb: Path, process: int, *commands: str) -> list[str]:
    before = ["-iex", "set auto-load off", "-iex", "set auto-solib-add off", "-iex", "set may-call-functions off"]
    after = [word for command in ("set width 80", *commands) for word in ("-ex", command)]
    done = subprocess.run(
        [str(gdb), "-nx", "-q", "-batch", *before, "-p", str(process), "-x", str(COMMANDS), *after],
        capture_output=True,
        text=True,
        timeout=100,
    )
    return (done.stdout + done.stderr).splitlines()


def test_python_and_cpp_stand_in_order(gdb: Path, process: int) -> None:
    frames = [line for line in told(gdb, process, "tdbg-bt") if line.startswith(("#", "py "))]
    wanted = [
        "py    hook  <string>:5",
        "torch::autograd::PyFunctionTensorPreHook::operator()",
        "torch::autograd::Engine::evaluate_function",
        "torch::autograd::python::PythonEngine::execute  libtorch_python.so",
        "THPEngine_run_backward",
        "py    _engine_run_backward  torch/autograd/graph.py:",
        "py    Tensor.backward  torch/_tensor.py:",
        "py    train  <string>:12",
        "py    <module>  <string>:13",
    ]
    places = [next(number for number, frame in enumerate(frames) if each in frame) for each in wanted]
    assert places == sorted(places)
    assert max(map(len, frames)) <= 80


def test_the_numbers_are_those_of_gdb(gdb: Path, process: int) -> None:
    """With the symbols read, gdb names the frame of that number so too."""
    own = next(line for line in told(gdb, process, "tdbg-bt") if "THPEngine_run_backward" in line)
    number = own.split()[0]
    shown = told(gdb, process, "sharedlibrary torch_python", "tdbg-bt", f"frame {number[1:]}")
    assert any(line.startswith(f"{number} ") and " in THPEngine_run_backward" in line for line in shown)


def test_all_threads(gdb: Path, process: int) -> None:
    lines = told(gdb, process, "tdbg-bt all")
    assert sum(line.startswith("Thread ") for line in lines) >= 2
    assert "py    waits  <string>:7" in lines
    assert "py    hook  <string>:5" in lines


def test_the_interpreters_own_functions(gdb: Path, process: int) -> None:
    assert not any("_PyEval_EvalFrameDefault" in line for line in told(gdb, process, "tdbg-bt"))
    assert any("_PyEval_Vector" in line for line in told(gdb, process, "tdbg-bt -interpreter"))


def test_a_wrong_word(gdb: Path, process: int) -> None:
    assert "tdbg-bt does not know every: help tdbg-bt" in told(gdb, process, "tdbg-bt every")


VERSIONS = {"/usr/bin/python3": "/usr/bin/python3"} | {version: find(version) for version in ("3.9", *VERSIONS_TO_FIND)}


@pytest.mark.parametrize("python", [path for path in VERSIONS.values() if path])
def test_frames_are_those_that_python_tells(python: str, tmp_path: Path) -> None:
    """Generators, coroutines, recursion, C functions that call back: the same functions and lines in the same order."""
    facts = tmp_path / "facts.json"
    child = subprocess.Popen([python, str(Path(__file__).parents[1] / "attach" / "program.py"), str(facts)])
    try:
        deadline = time.monotonic() + 60
        while not facts.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        expected = json.loads(facts.read_text())
        lines = told(Path("/usr/bin/gdb"), child.pid, "tdbg-bt 2000 all")
    finally:
        child.kill()
        child.wait()
    sections = "\n".join(lines).split("\nThread ")[1:]
    assert len(sections) == len(expected)
    for section in sections:
        thread = section.partition("(")[2].partition(")")[0]
        found = [line.split()[1:] for line in section.splitlines() if line.startswith("py ")]
        wanted = [[name, f"{short_path(file)}:{line}"] for name, file, line in expected[thread]]
        if thread == str(child.pid):  # it went on after it had written
            assert [name for name, _ in found] == ["main", "<module>"]
        elif "times more" in section:
            assert [each for each in found if each[0] != "deep"] == [each for each in wanted if each[0] != "deep"]
            assert "… this frame 149 times more" in section, "150 of `deep` in the same line, one in another"
        else:
            assert found == wanted
    assert "note:" not in "\n".join(lines)
