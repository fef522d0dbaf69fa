"""Other targets: Debian's stripped torch, and tdbg in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from torchbench_dbg.trace.operators import TraceAnalysis

from .conftest import Tdbg, Trace

DEBIAN = Path("/usr/bin/python3")


@pytest.fixture(scope="session")
def debian_python() -> Path:
    """Debian's Python with Debian's torch (package python3-torch, 1.13.1 in Debian 12)."""
    found = subprocess.run([str(DEBIAN), "-c", "import torch"], capture_output=True) if DEBIAN.exists() else None
    if found is None or found.returncode != 0:
        pytest.skip("Debian's python3-torch is not installed")
    return DEBIAN


def test_a_stripped_torch_is_traced_down_to_its_unnamed_kernel(trace: Trace, debian_python: Path) -> None:
    record = trace("x + w", python=debian_python)
    names = [function.name for function in record.functions]
    for wanted in (
        "at::_ops::add_Tensor::call(",
        "at::_ops::add_Tensor::redispatch(",
        "structured_ufunc_add_CPU::impl(",
    ):
        assert any(wanted in name for name in names), wanted
    analysis = TraceAnalysis(record)
    assert analysis.main_kernel is not None
    kernel = analysis.function(analysis.main_kernel.kernel)
    assert kernel is not None
    assert kernel.layer == "unnamed"
    assert kernel.name.startswith("libtorch_cpu.so.1.13")
    assert kernel.after
    (note,) = record.notes
    assert note.startswith("stripped: ")
    assert "symtab" not in {library.symbols for library in record.libraries}


def test_key_sets_have_names_on_the_old_torch_too(trace: Trace, debian_python: Path) -> None:
    record = trace("x + w", python=debian_python)
    winners = [record.key_names(call.keys)[-1] for call in record.calls if call.keys and record.key_names(call.keys)]
    assert "CPU" in winners


def test_backward_on_a_stripped_torch(trace: Trace, debian_python: Path) -> None:
    record = trace("(x * w).sum().backward()", python=debian_python)
    analysis = TraceAnalysis(record)
    nodes = [analysis.node_name(number) for number in analysis.node_calls]
    assert nodes == ["SumBackward0", "MulBackward0", "AccumulateGrad", "AccumulateGrad"]


@pytest.mark.parametrize("gdb", ["/usr/bin/gdb"])
def test_a_stop_on_a_stripped_torch(trace: Trace, debian_python: Path, gdb: str) -> None:
    if shutil.which(gdb) is None:
        pytest.skip("no system gdb is installed")
    record = trace("x + w", python=debian_python, breaks=("add_Tensor::call",), gdb=gdb)
    (stop,) = record.stops
    assert stop.frames[0].name.startswith("at::_ops::add_Tensor::call(")
    assert stop.frames[-1].name == "<module>"


def test_tdbg_from_another_environment(tdbg: Tdbg, debian_python: Path) -> None:
    """This interpreter has tdbg, Debian's has not: nothing of tdbg may be needed there."""
    done = tdbg("trace", "a + b", "--python", str(debian_python))
    assert done.returncode == 0, done.stderr
    assert "at::_ops::add_Tensor::call" in done.stdout
    assert "stripped: " in done.stdout
