"""--break: full merged backtraces by gdb 13 and 18, with lines, arguments, locals and tensors where there is DWARF."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from torchbench_dbg.debugger.gdb import find_gdb
from torchbench_dbg.trace.record import Frame, Stop

from .conftest import Tdbg, Trace

SCALED_ADD = "torch.ops.tdbg_example.scaled_add(x, b, 2.0)"


@pytest.fixture(params=["wheel", "system"])
def gdb(request: pytest.FixtureRequest) -> str:
    """The gdb of the wheel beside this interpreter (18.1), and the system's (13.1 on Debian 12)."""
    path = (
        str(Path(sys.executable).parent / "gdb") if request.param == "wheel" else shutil.which("gdb", path="/usr/bin")
    )
    if path is None or not Path(path).exists():
        pytest.skip(f"no {request.param} gdb is installed")
    assert find_gdb(path).version >= (12, 0)
    return path


def names(stop: Stop) -> list[str]:
    return [frame.name for frame in stop.frames]


def positions(stop: Stop, *wanted: str) -> list[int]:
    """Where in the stack the names that contain the wanted texts stand, the innermost first."""
    return [next(at for at, name in enumerate(names(stop)) if text in name) for text in wanted]


def test_backtrace_is_merged_from_the_kernel_to_the_python_line(trace: Trace, gdb: str) -> None:
    record = trace("(x * w).sum().backward()", breaks=("/MulBackward0::apply\\(/",), gdb=gdb)
    (stop,) = record.stops
    order = positions(
        stop,
        "MulBackward0::apply",
        "Node::operator()",
        "Engine::execute",
        "THPEngine_run_backward",
        "_engine_run_backward",
        "Tensor.backward",
        "<module>",
    )
    assert order == sorted(order)
    assert order[0] == 0
    python = {frame.name: (frame.file or "", frame.line) for frame in stop.frames if frame.kind == "python"}
    assert python["_engine_run_backward"][0].endswith("torch/autograd/graph.py")
    assert python["Tensor.backward"][0].endswith("torch/_tensor.py")
    assert python["<module>"] == ("<expr>", 1)
    # The rest of the run is seen as well, and computes.
    assert any("AccumulateGrad::apply" in function.name for function in record.functions)


def variables(frame: Frame) -> dict[str, str]:
    return {variable.name: variable.value for variable in (*frame.arguments, *frame.locals)}


def test_dwarf_gives_lines_arguments_locals_and_tensors(trace: Trace, gdb: str, extension: Path) -> None:
    record = trace(
        SCALED_ADD, load_libraries=(extension,), breaks=("scaled_add_rows", "scaled_add_kernel_cpu"), gdb=gdb
    )
    kernel, rows = record.stops
    source = Path(__file__).parent / "extension" / "tdbg_example.cpp"
    lines = source.read_text().splitlines()
    inner = rows.frames[0]
    assert inner.file == str(source)
    assert "for (int64_t i = 0" in lines[(inner.line or 0) - 1]
    assert (variables(inner)["count"], variables(inner)["alpha"]) == ("16", "2")
    caller = variables(rows.frames[1])
    assert caller["a"] == "Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=True)"
    assert caller["b"] == "Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)"
    assert caller["out"] == "Tensor(shape=[4, 4], dtype=float32, device=cpu, requires_grad=False)"
    first = variables(kernel.frames[0])
    assert first["alpha"] == "2"
    assert "out" not in first  # not yet set where the function begins
    assert record.result is not None
    assert record.result.digest == trace("x.detach() + 2.0 * b").result.digest  # type: ignore[union-attr]


def test_extension_is_traced_as_torch_is(trace: Trace, extension: Path) -> None:
    record = trace(SCALED_ADD, load_libraries=(extension,))
    named = {function.name.partition("(")[0]: function for function in record.functions}
    assert named["tdbg_example::scaled_add_kernel_cpu"].layer == "extension"
    assert "tdbg_example::scaled_add_rows" in named
    assert any(library.path == str(extension) and library.has_dwarf for library in record.libraries)


@pytest.mark.parametrize(
    ("wanted", "innermost", "note"),
    [
        ("THPVariable_add", "torch::autograd::THPVariable_add", None),
        ("torch::autograd::THPVariable_add", "torch::autograd::THPVariable_add", None),
        ("add_kernel", "at::native::(anonymous namespace)::add_kernel", None),
        ("add_Tensor::call", "at::_ops::add_Tensor::call", None),
        ("/_ops::add_Tensor::call/", "at::_ops::add_Tensor::call", None),
        ("torch.Tensor.add", "torch::autograd::THPVariable_add", "bound to THPVariable_add"),
    ],
)
def test_names_of_functions(trace: Trace, wanted: str, innermost: str, note: str | None) -> None:
    record = trace("a.add(b)", breaks=(wanted,))
    assert names(record.stops[0])[0].startswith(innermost + "(")
    assert (note is None) == (not record.notes)
    assert note is None or note in record.notes[0]


def test_python_functions_and_aliases(trace: Trace) -> None:
    record = trace("x.sum().backward()", breaks=("torch.autograd.backward", "_base_autograd_backward"))
    python, engine = record.stops
    assert (python.title, names(python)) == ("torch.autograd.backward", ["backward", "Tensor.backward", "<module>"])
    assert names(engine)[0].startswith("THPEngine_run_backward(")
    assert record.notes == ("_base_autograd_backward is THPEngine_run_backward in today's PyTorch",)


def test_hits_limit_the_stops_of_each_breakpoint(trace: Trace) -> None:
    record = trace("a + b; a + b; a + b", breaks=("add_kernel",), hits=2)
    assert [stop.title for stop in record.stops] == ["add_kernel", "add_kernel"]
    calls = [record.functions[call.ref].name for call in record.calls if call.kind == "native"]
    assert sum("::add_kernel(" in name and "lambda" not in name for name in calls) == 3


def test_stops_on_a_line_of_a_script(tdbg: Tdbg, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch\n\ndef loss(value):\n    return (value * value).sum()\n\n"
        "x = torch.ones(3, requires_grad=True)\nassert sys.argv[1:] == ['--fast']\nloss(x).backward()\n"
    )
    done = tdbg("trace", "--script", str(tmp_path / "train.py"), "--line", "8", "--arg=--fast", "--break", "mul_kernel")
    assert done.returncode == 0, done.stderr
    stack = done.stdout[done.stdout.index("stopped at mul_kernel") :]
    assert stack.index("mul_kernel") < stack.index("loss  train.py:4") < stack.index("<module>  train.py:8")


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("x + w", "add_kernel"),
        ("(x * w).sum().backward()", "/MulBackward0::apply\\(/"),
        ("F.conv2d(a[None, None], b[None, None, :3, :3])", "/cpublas::gemm\\(/"),
        ("torch.vmap(torch.add)(a, b)", "add_kernel"),
        ("F.layer_norm(a @ b, (4,))", "LayerNormKernelImpl"),
        ("torch.linalg.inv(a)", "lu_factor_kernel"),
    ],
)
def test_the_tree_agrees_with_gdb(trace: Trace, expression: str, wanted: str) -> None:
    """The callers in the tree, found by entries alone, are the frames that gdb unwinds."""
    record = trace(expression, breaks=(wanted,))
    stop = record.stops[0]
    tree: list[int] = []
    number, inner_jumped = stop.call, False
    while number >= 0:
        call = record.calls[number]
        if call.kind == "native" and not inner_jumped:  # who leaves by a jump has no frame any more
            tree.append(number)
        inner_jumped = call.tail
        number = call.parent
    expected = [record.functions[record.calls[each].ref].name for each in tree]
    known = {function.name for function in record.functions}
    unwound = [frame.name for frame in stop.frames if frame.kind == "native" and frame.name in known]
    assert len(expected) > 5
    assert unwound == expected
