"""Stacks of processes that run torch: through libraries that gdb has not read, and code without unwind tables."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbench_dbg.debugger.backtrace import capture
from torchbench_dbg.debugger.gdb import Gdb

from ..interpreters import has_torch, require_torch
from .conftest import Stopped, names, require_gdb

Start = Callable[..., Stopped]

IN_MKL = """
import torch
torch.set_num_threads(1)
a = torch.ones(1500, 1500)
a.sin()
print("ready", flush=True)
while True:
    a.sin()
"""


@pytest.fixture(params=["wheel", "debian"])
def torch_python(request: pytest.FixtureRequest) -> str:
    """An interpreter with torch of the wheel, and Debian's, whose libraries are stripped."""
    if request.param == "wheel":
        return require_torch()
    if not has_torch("/usr/bin/python3"):
        pytest.skip("no python3-torch is installed")
    return "/usr/bin/python3"


def test_a_stack_from_the_kernel_to_the_interpreter(gdb: Gdb, torch_python: str, stopped: Start) -> None:
    """Through libraries that gdb has not read, and through math functions without unwind tables."""
    process = stopped(torch_python, "-c", IN_MKL)
    found = capture(gdb, process.pid, all_threads=True)
    assert found.warnings == ()
    order = [
        next(at for at, name in enumerate(names(found)) if wanted in name)
        for wanted in ("at::_ops::sin::call", "Py_BytesMain", "__libc_start_main")
    ]
    assert order == sorted(order)
    assert names(found)[-1] == "_start"
    libraries = [Path(frame.library or "?").name for frame in found.frames]
    assert "?" not in libraries
    assert "libtorch_cpu" in libraries[order[0]]
    assert "libtorch_python" in libraries[order[0] + 1]


def test_both_gdbs_see_the_same(torch_python: str, stopped: Start) -> None:
    wheel, system = require_gdb("wheel"), require_gdb("system")
    process = stopped(torch_python, "-c", IN_MKL)
    stacks = [[(frame.pc, frame.library) for frame in capture(each, process.pid).frames] for each in (wheel, system)]
    assert stacks[0] == stacks[1]


def test_libraries_whose_symbols_nobody_wants(gdb: Gdb, torch_python: str, stopped: Start) -> None:
    process = stopped(torch_python, "-c", IN_MKL)
    found, bare = capture(gdb, process.pid), capture(gdb, process.pid, libraries=[])
    assert {frame.function for frame in bare.frames if "libtorch_cpu" in (frame.library or "")} == {None}
    # Inline frames need debug information; all others are the same.
    assert [frame.pc for frame in bare.frames] == [frame.pc for frame in found.frames if not frame.inline]


GENERATED = """
import torch
torch.set_num_threads(2)
if "conv" in {expression!r}:
    a, w = torch.randn(4, 16, 64, 64), torch.randn(32, 16, 3, 3)
else:
    a = torch.randn(512, 512).bfloat16()
{expression}
print("ready", flush=True)
while True:
    {expression}
"""


@pytest.mark.parametrize("expression", ["torch.conv2d(a, w)", "a @ a"])
def test_stacks_are_complete_wherever_the_process_stands(gdb: Gdb, stopped: Start, expression: str) -> None:
    """In libraries, in code that oneDNN has generated, in OpenMP's threads."""
    process = stopped(require_torch(), "-c", GENERATED.format(expression=expression))
    for _ in range(6):
        found = capture(gdb, process.pid, all_threads=True)
        assert found.warnings == ()
        assert next(thread.frames[-1].function for thread in found.threads) == "_start"
        assert {"clone" in (thread.frames[-1].function or "") for thread in found.threads[1:]} <= {True}
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGSTOP)
        process.wait_for("T")
