"""What a person sees: the path of `a + b`, the tree, the stack; and that a saved trace is drawn the same."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

from torchbench_dbg.trace.schema import json_schema

from .conftest import Tdbg


def in_order(text: str, *wanted: str) -> None:
    """Each piece stands in the text, after the one before."""
    position = 0
    for piece in wanted:
        found = text.find(piece, position)
        assert found >= 0, f"{piece!r} is not (in this order) in:\n{text}"
        position = found + len(piece)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_path_of_a_plus_b(tdbg: Tdbg, columns: str) -> None:
    done = tdbg("trace", "a + b", environment={"COLUMNS": columns})
    assert done.returncode == 0, done.stderr
    in_order(
        done.stdout,
        "a, b: float32 randn 4x4",
        "<expr>:1  a + b",
        "TypeError_to_NotImplemented_<THPVariable_add>",
        "THPVariable_add",
        "at::_ops::add_Tensor::call",
        "CPU, AutogradCPU wins",
        "wrapper_CPU_add_Tensor",
        "structured_ufunc_add_CPU::impl",
        "DispatchStub",
        "at::native::add_kernel",
        "VectorizedLoop2d",
        "kernel  at::native::add_kernel",
        "result   tensor(",
    )
    assert max(len(line) for line in done.stdout.splitlines()) <= int(columns)


def test_the_path_of_tensors_that_require_grad(tdbg: Tdbg) -> None:
    text = tdbg("trace", "x + w").stdout
    in_order(
        text, "at::_ops::add_Tensor::call", "AutogradCPU wins", "VariableType::add_Tensor", "add_Tensor::redispatch"
    )
    keys = [int(raw, 16) for raw in re.findall(r"keys (0x[0-9a-f]+)", text)]
    assert len(keys) == 2
    assert keys[0] & keys[1] == keys[1] != keys[0]  # the redispatch has fewer keys


def test_backward_has_one_subtree_for_each_node(tdbg: Tdbg) -> None:
    done = tdbg("trace", "(x * w).sum().backward()")
    in_order(
        done.stdout,
        "all kernels",
        "aten::mul.Tensor",
        "SumBackward0",
        "backward of aten::sum, made at <expr>:1",
        "MulBackward0",
        "backward of aten::mul.Tensor, made at <expr>:1",
        "mul_kernel",
        "AccumulateGrad",
        "AccumulateGrad",
    )
    tree = tdbg("show", "last", "--tree", "--grep", "Backward0::apply|mul_kernel$|AccumulateGrad::apply").stdout
    in_order(
        tree,
        "Tensor.backward",
        "THPEngine_run_backward",
        "SumBackward0::apply",
        "MulBackward0::apply",
        "AccumulateGrad",
    )
    node = next(line for line in tree.splitlines() if "MulBackward0::apply" in line)
    assert sum(line.endswith("engine") and "Node::operator()" in line for line in tree.splitlines()) == 4, node


def test_work_on_other_threads_is_shown_under_their_thread(tdbg: Tdbg) -> None:
    expression = "import threading; t = threading.Thread(target=lambda: a.mul(b)); t.start(); t.join()"
    text = tdbg("trace", expression, "--tree").stdout
    main, other = text.index("── main thread"), text.index("── thread ")
    assert (
        text.index("at::native::(anonymous namespace)::mul_kernel".replace("(anonymous namespace)::", ""))
        > other
        > main
    )


def test_depth_grep_and_noise(tdbg: Tdbg) -> None:
    assert tdbg("trace", "a + b", "--all", "--tree").returncode == 0
    whole, shallow, matching = (
        tdbg("show", "last", "--tree", *more).stdout for more in ([], ["--depth", "3"], ["--grep", "add_kernel$"])
    )
    assert "(+" in shallow
    assert len(shallow.splitlines()) < len(matching.splitlines()) < len(whole.splitlines())
    assert "alloc_cpu" in whole
    assert "alloc_cpu" not in matching
    noisy = tdbg("show", "last", "--tree", "--all").stdout
    assert "~" in noisy
    assert "::~" not in whole


@pytest.mark.parametrize("view", [[], ["--tree"], ["--stack"], ["--tree", "--depth", "4"], ["--json"]])
def test_a_saved_trace_is_drawn_as_the_live_one(tdbg: Tdbg, tmp_path: Path, view: list[str]) -> None:
    file = tmp_path / "trace.json"
    live = tdbg("trace", "x + w", "-o", str(file), *view)
    assert live.returncode == 0, live.stderr
    assert tdbg("show", str(file), *view).stdout == live.stdout
    assert tdbg("show", "last", *view).stdout == live.stdout


def test_json_follows_the_schema(tdbg: Tdbg) -> None:
    done = tdbg("trace", "(x * w).sum().backward()", "--break", "mul_kernel", "--json")
    record = json.loads(done.stdout)
    jsonschema.Draft202012Validator(json_schema()).validate(record)
    assert record["schema"] == "tdbg.trace/1"
    assert len(record["stops"]) == 1
    whole = [function["name"] for function in record["functions"]]
    assert any(name.startswith("torch::autograd::VariableType::(anonymous namespace)::mul_Tensor(") for name in whole)


def test_runs_are_listed_the_newest_first(tdbg: Tdbg) -> None:
    for expression in ("a + b", "a @ c"):
        tdbg("trace", expression)
    listed = tdbg("runs").stdout.splitlines()
    assert [line.split(maxsplit=2)[1:] for line in listed] == [["raised", "a @ c"], ["finished", "a + b"]]
    newest = json.loads(tdbg("runs", "--json").stdout)[0]
    assert newest["title"] == "a @ c"
    assert tdbg("show", newest["identifier"]).returncode == 0


def test_what_autograd_adds_to_an_addition(tdbg: Tdbg, tmp_path: Path) -> None:
    """Inputs that require grad get nodes; the kernel stays the same one."""
    for expression in ("a + b", "x + w"):
        tdbg("trace", expression)
    found = tdbg("diff", "last~1", "last", "--exit-code")
    assert found.returncode == 1, found.stderr
    added = [line for line in found.stdout.splitlines() if line.startswith("+ ")]
    assert any("AccumulateGrad" in line for line in added)
    assert not [line for line in found.stdout.splitlines()[2:] if line.startswith("- ")]
    assert "kernels  the same" in found.stdout
    same = tdbg("diff", "last", "last", "--exit-code")
    assert same.returncode == 0
    assert "the same bits" in same.stdout
    saved = tmp_path / "difference.json"
    saved.write_text(tdbg("diff", "last~1", "last", "--json").stdout)
    assert tdbg("show", str(saved)).stdout == found.stdout


def test_output_goes_to_stdout_and_talk_to_stderr(tdbg: Tdbg) -> None:
    done = tdbg("trace", "print('from the expression')", "--json")
    assert "from the expression" in done.stderr
    json.loads(done.stdout)


def test_closed_streams(tdbg: Tdbg) -> None:
    command = ["bash", "-c", '"$@" 0<&- 2>&-', "closed", *tdbg.command("trace", "a + b")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=tdbg.environment, timeout=60)
    assert done.returncode == 0
    assert "add_kernel" in done.stdout


def test_a_reader_that_leaves_early_is_no_fault(tdbg: Tdbg) -> None:
    command = [
        "bash",
        "-c",
        '"$@" | head -1; exit "${PIPESTATUS[0]}"',
        "piped",
        *tdbg.command("trace", "a + b", "--tree"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=tdbg.environment, timeout=60)
    assert done.stdout == "a + b\n"
    assert done.stderr == ""
