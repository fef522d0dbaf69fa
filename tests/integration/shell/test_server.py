"""Traces in forks of one interpreter: the same as alone, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbench_dbg.errors import ExpressionError, InferiorCrashed, UnknownSymbol
from torchbench_dbg.shell.server import ServerGone, TorchServer
from torchbench_dbg.trace import procfs
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.request import TraceRequest

from .conftest import Trace, children, descriptors


def path_of(record: TraceRecord) -> tuple[object, ...]:
    """What must not depend on how the interpreter came to be."""
    functions, codes = record.functions, record.codes
    calls = [
        (call.parent, call.kind, functions[call.ref].symbol if call.kind == "native" else codes[call.ref].name)
        for call in record.calls
    ]
    return record.status, record.result, record.names, record.operators, record.key_sets, calls


@pytest.mark.parametrize("expression", ["a + b", "F.relu(x).sum().backward()", "m(a)"])
def test_the_record_is_that_of_tdbg_trace(in_shell: Trace, alone: Trace, expression: str) -> None:
    setup = "m = nn.Linear(4, 4)"
    assert path_of(in_shell(expression, setup=setup)) == path_of(alone(expression, setup=setup))


def test_thread_pools_work_in_the_fork(in_shell: Trace) -> None:
    threads = "torch.set_num_threads(4); v = torch.ones(700, 700, requires_grad=True)"
    for work, value in (
        ("(bool((v @ v == 700).all()), torch.get_num_threads())", "(True, 4)"),
        ("c = F.conv2d(torch.ones(8, 3, 64, 64), torch.ones(16, 3, 3, 3)); bool((c == 27).all())", "True"),
        ("(v @ v).sum().backward(); bool((v.grad == 1400).all())", "True"),
    ):
        record = in_shell(f"{threads}; {work}")
        assert record.result is not None
        assert record.result.text == value


def test_each_expression_begins_anew(in_shell: Trace) -> None:
    assert in_shell("a.zero_(); torch.set_default_dtype(torch.float64); kept = 1").status == "finished"
    record = in_shell("(bool(a.any()), torch.get_default_dtype(), 'kept' in globals())")
    assert record.result is not None
    assert record.result.text == "(True, torch.float32, False)"


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("import os; os._exit(3)", "exited"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("1 / 0", "raised"),
        ("import sys; sys.exit(3)", "raised"),
    ],
)
def test_an_end_of_one_expression_is_not_that_of_the_server(
    server: TorchServer, in_shell: Trace, expression: str, status: str
) -> None:
    assert in_shell(expression).status == status
    assert children(server.pid) == []
    assert in_shell("a + b").status == "finished"


def test_an_expression_that_closes_every_descriptor(server: TorchServer, in_shell: Trace) -> None:
    with pytest.raises(InferiorCrashed, match="died after the expression"):
        in_shell("import os; os.closerange(3, 1000)", cold=True)
    assert children(server.pid) == []
    assert in_shell("a + b").status == "finished"


def test_a_loop_without_end_reaches_the_timeout(server: TorchServer, in_shell: Trace) -> None:
    assert in_shell("while True: pass", timeout=1.0).status == "timeout"
    assert children(server.pid) == []


def test_ctrl_c_in_an_expression(server: TorchServer, in_shell: Trace) -> None:
    before = children(os.getpid())
    for expression in (
        "while True: pass",
        "import threading; [threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start() for _ in range(3)]\n"
        "while True: pass",
        "import os\nos.fork()\nos.setsid() if os.getpgrp() != os.getpid() else None\nwhile True: pass",
    ):
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            in_shell(expression, cold=True)
        timer.join()
        assert children(server.pid) == []
        assert children(os.getpid()) == before
    assert in_shell("a + b").status == "finished"


def test_errors_are_those_of_tdbg_trace(in_shell: Trace) -> None:
    with pytest.raises(ExpressionError, match="not valid Python"):
        in_shell("a +")
    with pytest.raises(ExpressionError, match="the setup raised ZeroDivisionError"):
        in_shell("a", setup="1 / 0")
    with pytest.raises(UnknownSymbol, match="no function"):
        in_shell("a + b", breaks=("add_kernle",))
    with pytest.raises(ExpressionError, match="no dtype"):
        in_shell("a", dtype="float33")


def test_a_stop_by_gdb(in_shell: Trace) -> None:
    record = in_shell("a + b", breaks=("add_kernel",))
    assert record.status == "finished"
    names = [frame.name for frame in record.stops[0].frames]
    assert any("add_kernel" in name for name in names)
    assert any("<expr>" in str(frame.file) for frame in record.stops[0].frames if frame.kind == "python")


def test_fifty_expressions_leave_nothing(server: TorchServer, in_shell: Trace) -> None:
    in_shell("a + b")
    seen = descriptors(), children(os.getpid()), len(os.listdir(f"/proc/{server.pid}/fd"))
    before = memory(server.pid), memory(os.getpid())
    for _ in range(50):
        assert in_shell("a + b").status == "finished"
    assert (descriptors(), children(os.getpid()), len(os.listdir(f"/proc/{server.pid}/fd"))) == seen
    assert children(server.pid) == []
    after = memory(server.pid), memory(os.getpid())
    assert after[0] - before[0] < 1024  # KiB: less than 21 each
    assert after[1] - before[1] < 8192


def memory(pid: int) -> int:
    """Resident memory that is the process's own, in KiB."""
    return int(procfs.status(pid)["RssAnon"].split()[0])


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("torch.nn.functional.rel", {"relu", "relu_", "relu6"}),
        ("F.conv2", {"conv2d"}),
        ("nn.Lin", {"Linear"}),
        ("a.requires", {"requires_grad", "requires_grad_"}),
        ("torch.Tensor.ad", {"add", "add_", "addmm"}),
        ("torch.nn.Linear.forw", {"forward"}),
    ],
)
def test_completions(server: TorchServer, text: str, some: set[str]) -> None:
    assert some <= set(server.completions(text))


def test_completion_runs_nothing(server: TorchServer) -> None:
    assert server.completions("nothing.at.all") == []
    assert server.completions("torch.add.") == []
    assert not any(name.startswith("_") for name in server.completions("torch."))
    assert "_C" in server.completions("torch._")


def test_a_server_that_died_is_said(torch_python: Path, cache: Path, request_for: Callable[..., TraceRequest]) -> None:
    with TorchServer(torch_python, cache=cache, warn=pytest.fail) as server:
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(ServerGone, match="died"):
            server.trace(request_for("a + b"))
