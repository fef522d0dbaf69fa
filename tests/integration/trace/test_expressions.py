"""The table of expressions: each reaches the kernel that PyTorch's sources say, and computes the same bits."""

from __future__ import annotations

import re
import sys
from functools import cache as memoized
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.trace.inferior import Inferior, spawned
from torchbench_dbg.trace.names import demangle, qualified
from torchbench_dbg.trace.operators import TraceAnalysis
from torchbench_dbg.trace.record import TraceRecord

from .conftest import Trace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("expressions.toml").read_text())["case"]


def kernel_name(record: TraceRecord) -> str:
    """The qualified name of what the trace calls the main kernel, "" if none ran."""
    analysis = TraceAnalysis(record)
    use = analysis.main_kernel
    function = analysis.function(use.kernel) if use else None
    return qualified(demangle(function.symbol)) if function else ""


def plain_result(python: Path, case: dict[str, Any]) -> dict[str, Any]:
    """The digests of the same expression, run by the same interpreter without tracing."""
    config = {
        "expression": case["expression"],
        "setup": case.get("setup"),
        "cold": case.get("cold", False),
        "plain": True,
        "device": "cpu",
        "dtype": "float32",
        "seed": 0,
    }
    with Inferior(spawned(python), config) as inferior:
        event = inferior.receive(timeout=60)
        while event["event"] not in ("finished", "raised"):
            if event["event"] == "imported":
                inferior.send({"command": "prepare"})
            event = inferior.receive(timeout=60)
    assert event["event"] == "finished", event
    return dict(event["result"])


def test_the_table_is_large_enough() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 40
    assert all(case["why"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_expression(case: dict[str, Any], trace: Trace, torch_python: Path) -> None:
    record = trace(case["expression"], setup=case.get("setup"), cold=case.get("cold", False))
    assert record.status == "finished", record.status_detail
    names = [function.name for function in record.functions]
    for pattern in case["entered"]:
        assert any(re.search(pattern, name) for name in names), f"{pattern} was not entered"
    dispatched = {found[1] for name in names if (found := re.match(r"at::_ops::(\w+)::call\(", name))}
    assert dispatched >= {operator.partition("::")[2].replace(".", "_") for operator in case["ops"]}
    for pattern in case.get("absent", []):
        assert not [name for name in names if re.search(pattern, name)], f"{pattern} was entered"
    if case["kernel"]:
        assert re.search(case["kernel"], kernel_name(record))
    else:
        assert kernel_name(record) == ""
    plain = plain_result(torch_python, case)
    assert record.result is not None
    traced = (record.result.digest, record.result.grad_digest, record.result.names_digest)
    assert traced == (plain["digest"], plain["grad_digest"], plain["names_digest"])


@memoized
def native_functions(torch: Path) -> str:
    return (torch.parent / "torchgen/packaged/ATen/native/native_functions.yaml").read_text()


@pytest.mark.parametrize(
    ("operator", "native"), sorted({pair for case in CASES for pair in case.get("yaml", {}).items()})
)
def test_the_table_agrees_with_native_functions_yaml(operator: str, native: str, torch_python: Path) -> None:
    """The native function that the table expects is the one that the installed torch's own yaml names."""
    torch = next(torch_python.parent.parent.glob("lib/python3*/site-packages/torch"), None)
    if torch is None:
        pytest.skip("this torch ships no native_functions.yaml")
    entry = re.search(rf"^- func: {re.escape(operator)}\(.*?(?=^- func:|\Z)", native_functions(torch), re.M | re.S)
    assert entry is not None
    dispatched = re.findall(r"^\s+(?P<keys>[\w, ]+): (?P<kernel>\w+)$", entry[0], re.M)
    kernels = [kernel for keys, kernel in dispatched if re.search(r"\b(CPU|Composite\w+|SparseCPU)\b", keys)]
    assert native in kernels
