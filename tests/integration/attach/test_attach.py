"""`tdbg attach` shows what a process says of itself, and leaves it as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.interpreters import VERSIONS, require
from torchbench_dbg.attach.engine import attach
from torchbench_dbg.attach.record import Thread, from_json
from torchbench_dbg.errors import PtraceForbidden, TargetError
from torchbench_dbg.trace import ptrace

from .conftest import HERE

Start = Callable[..., "subprocess.Popen[str]"]
Tdbg = Callable[..., "subprocess.CompletedProcess[str]"]

IN_A_HOOK = """
import sys, threading, time, torch
def hook(gradient):
    open(sys.argv[1], "w").close()
    time.sleep(1000)
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
def train():
    weight = torch.ones(3, requires_grad=True)
    product = weight * 2
    product.register_hook(hook)
    product.sum().backward()
train()
"""
BUSY = """
import sys, torch
x = torch.ones(1500, 1500)
open(sys.argv[1], "w").close()
def multiply():
    while True:
        x @ x
multiply()
"""


def names(thread: Thread) -> list[str]:
    """Outermost first."""
    return [frame.name for frame in reversed(thread.frames)]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("version", ["3.9", *VERSIONS])
def test_python_frames_are_those_that_the_program_sees(start: Start, tmp_path: Path, version: str) -> None:
    ready = tmp_path / "stacks.json"
    process = start(require(version), HERE / "program.py", str(ready), ready=ready)
    told = {int(tid): frames for tid, frames in json.loads(ready.read_text()).items()}
    del told[process.pid]  # it goes on to the next line
    record = attach(process.pid)
    assert record.notes == ()
    seen = {
        thread.native_id: [[frame.name, frame.file, frame.line] for frame in thread.frames if frame.kind == "python"]
        for thread in record.threads
    }
    assert len(told) == 4
    assert {tid: seen[tid] for tid in told} == told


def test_python_called_by_c_stands_where_it_was_called(start: Start, tmp_path: Path) -> None:
    """sorted() is a C function between two Python frames: with --all it is between them."""
    ready = tmp_path / "stacks.json"
    process = start(require("3.11"), HERE / "program.py", str(ready), ready=ready)
    record = attach(process.pid, everything=True)
    (sorting,) = [thread for thread in record.threads if "sorts" in names(thread)]
    order = names(sorting)
    assert order.index("sorts") < order.index("list_sort_impl") < order.index("sorts.<locals>.<lambda>")


def test_through_the_autograd_engine(start: Start, torch_python: str, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = tmp_path / "train.py"
    script.write_text(IN_A_HOOK)
    process = start(torch_python, script, str(ready), ready=ready)
    record = attach(process.pid)
    main = record.threads[0]
    order = names(main)
    wanted = ["train", "Tensor.backward", "_engine_run_backward", "THPEngine_run_backward", "hook"]
    places = [next(number for number, name in enumerate(order) if name.startswith(each)) for each in wanted]
    assert places == sorted(places)
    engine = next(number for number, name in enumerate(order) if name.startswith("torch::autograd::Engine::execute("))
    assert places[3] < engine < places[4]
    layers = main.layers[::-1]
    assert (layers[places[0]], layers[places[3]], layers[engine]) == ("python", "binding", "engine")
    assert any(thread.state == "waiting for a lock" for thread in record.threads)


def test_a_busy_process_down_to_its_blas(start: Start, torch_python: str, tmp_path: Path) -> None:
    """MKL's kernels have no unwind tables; the frames below them are found all the same."""
    ready = tmp_path / "ready"
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    process = start(torch_python, script, str(ready), ready=ready)
    time.sleep(0.5)
    whole = 0
    for _ in range(10):
        main = attach(process.pid).threads[0]
        order = names(main)
        assert "multiply" in order
        if any("at::_ops::mm::call" in name for name in order) and "gemm" in order[-1]:
            assert main.layers[0] == "blas"
            whole += 1
    assert whole >= 8  # at some moments it is between two calls


def test_a_hundred_looks_do_no_harm(start: Start, tmp_path: Path) -> None:
    ready, stop = tmp_path / "ready", tmp_path / "stop"
    process = start(require("3.11"), HERE / "counter.py", str(ready), str(stop), ready=ready)
    for _ in range(100):
        assert attach(process.pid).threads
    assert process.poll() is None
    stop.touch()
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    rounds, same = map(int, output.split())
    assert rounds == same > 0


def test_a_stopped_process_stays_stopped(start: Start, tmp_path: Path) -> None:
    ready = tmp_path / "stacks.json"
    process = start(require("3.11"), HERE / "program.py", str(ready), ready=ready)
    os.kill(process.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while state_of(process.pid) != "T" and time.monotonic() < deadline:
        time.sleep(0.01)
    record = attach(process.pid)
    assert len(record.threads) == 5
    assert "main" in names(record.threads[0])
    time.sleep(0.1)
    assert state_of(process.pid) == "T"
    os.kill(process.pid, signal.SIGCONT)
    time.sleep(0.1)
    assert state_of(process.pid) == "S"
    assert Path(f"/proc/{process.pid}/status").read_text().count("TracerPid:\t0") == 1


def test_a_program_without_python(start: Start) -> None:
    process = start("/bin/sleep", Path("1000"))
    time.sleep(0.3)
    record = attach(process.pid)
    assert "no Python is loaded in this process" in record.notes[0]
    assert any("nanosleep" in name for name in names(record.threads[0]))


def test_who_traces_it_already_is_said(start: Start, tmp_path: Path) -> None:
    process = start("/bin/sleep", Path("1000"))
    ptrace.watch(process.pid)
    child = os.fork()
    if child == 0:
        try:
            attach(process.pid)
        except PtraceForbidden as error:
            os._exit(7 if f"by process {os.getppid()}" in error.message else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_process_that_ends_meanwhile(start: Start) -> None:
    process = start("/bin/sleep", Path("0.2"))
    looks = 0

    def look_on() -> None:
        nonlocal looks
        while True:
            attach(process.pid)
            looks += 1
            process.poll()

    with pytest.raises(TargetError, match=r"has ended|there is no process"):
        look_on()
    assert looks


def test_the_command(start: Start, tdbg: Tdbg, tmp_path: Path) -> None:
    ready = tmp_path / "stacks.json"
    script = tmp_path / "a_script_of_its_own.py"
    script.write_text((HERE / "program.py").read_text())
    process = start(require("3.11"), script, str(ready), ready=ready)
    shown = tdbg("attach", str(process.pid))
    assert shown.returncode == 0, shown.stderr
    assert "5 threads · it stood still for" in shown.stdout
    assert f"deep  {script}:" in shown.stdout
    assert "this frame, 150 times" in shown.stdout
    assert tdbg("show", "last").stdout == shown.stdout
    saved = tdbg("attach", "a_script_of_its_own.py", "--json", "-o", str(tmp_path / "stacks.out"))
    assert from_json(json.loads(saved.stdout)).pid == process.pid
    assert json.loads((tmp_path / "stacks.out").read_text()) == json.loads(saved.stdout)
    one = tdbg("attach", "a_script_of_its_own.py", "--thread", str(process.pid))
    assert "1 thread · it stood still" in one.stdout
    assert "Worker.run" not in one.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["4194304999"], 4, "there is no process 4194304999"),
        (["no-such-script.py"], 4, "no Python process has no-such-script.py in its command"),
        (["--thread", "x", "1"], 2, "--thread"),
    ],
)
def test_what_is_not_there(tdbg: Tdbg, arguments: list[str], code: int, said: str) -> None:
    done = tdbg("attach", *arguments)
    assert done.returncode == code
    assert said in " ".join(done.stderr.split())
