"""tdbg-tensor, tdbg-keys, tdbg-graph and tdbg-break on an installed PyTorch without debug information."""

from __future__ import annotations

import re

import pytest
import tdbg_keys

from .conftest import Ask, Session, table
from .expected import check

IN_ADD = ["tdbg-tensor $rsi", "tdbg-keys $rsi", "tdbg-graph {OBJECT of result}"]
COMMANDS = [
    "tdbg-tensor {ADDRESS of *}",
    "tdbg-tensor {OBJECT of *}",
    "tdbg-keys {OBJECT of result}",
    "tdbg-keys {ADDRESS of sparse coo}",
    "tdbg-keys 0x4001",
    "tdbg-keys 0x10001",
    "tdbg-graph {OBJECT of result}",
    "tdbg-graph {NODE of result}",
    "tdbg-graph {OBJECT of plain}",
    "tdbg-tensor 0",
    "tdbg-tensor 0x10",
    "tdbg-tensor $sp",
    "tdbg-break mm -native",
    "tdbg-break Tensor.mm",
    "tdbg-break relu -all",
    "tdbg-break AddBackward0",
    "tdbg-break at::native::add_kernel",
    "tdbg-break aten::add.out",
    "tdbg-break sofmax",
    "tdbg-break -no add",
    "tdbg-break",
    "info breakpoints",
]


@pytest.fixture
def session(ask: Ask, gdb: str, torch_python: str) -> Session:
    return ask("commands", gdb, torch_python, COMMANDS, before=["tdbg-break add", "tdbg-break nosuchoperator"])


def is_stripped(session: Session) -> bool:
    """Debian's, which is the old one too."""
    return session.facts["version"].startswith("1.13")


def test_every_tensor_by_both_addresses(session: Session) -> None:
    assert len(session.tensors) > 30
    for name, facts in session.tensors.items():
        for kind in ("ADDRESS", "OBJECT"):
            answer = session.answers[f"tdbg-tensor {{{kind} of {name}}}"]
            assert answer.startswith("PyObject at 0x" if kind == "OBJECT" else ("c10::", "at::")), answer
            check(table(answer), facts, name)


def test_the_gradient_is_shown(session: Session) -> None:
    grad = table(session.answers["tdbg-tensor {OBJECT of with grad}"])["grad"]
    assert grad == "Tensor(shape=[3], dtype=float32, device=cpu, requires_grad=False)"
    assert table(session.answers["tdbg-tensor {OBJECT of leaf}"])["grad"] == "None"


def test_lazy_conjugation_is_told(session: Session) -> None:
    told = table(session.answers["tdbg-tensor {OBJECT of conjugate}"])
    assert told["elements"] == "[1.0+2.0j] as stored, to be conjugated"


def test_key_sets_have_the_names_that_torch_gives_them(session: Session) -> None:
    known = tdbg_keys.table_of(tuple(map(int, session.facts["version"].split(".")[:2])))
    told = {raw: f"DispatchKeySet({', '.join(known.names(int(raw)))})" for raw in session.facts["key_sets"]}
    assert told == session.facts["key_sets"]
    assert len(told) > 70


def test_keys_of_tensors(session: Session) -> None:
    first, second = session.answers["tdbg-keys {OBJECT of result}"].splitlines()
    assert first.endswith("  CPU, ADInplaceOrView, AutogradCPU, AutocastCPU")
    assert second.startswith("  AutogradCPU wins")
    raw = "0x4001" if is_stripped(session) else "0x10001"  # what is left of the set below autograd
    assert session.answers[f"tdbg-keys {raw}"] == f"{raw}  CPU\n  CPU wins\n"
    assert "  SparseCPU, " in session.answers["tdbg-keys {ADDRESS of sparse coo}"]


def test_the_graph_of_a_result(session: Session) -> None:
    told = [
        re.sub(r" at 0x[0-9a-f]+", "", line) for line in session.answers["tdbg-graph {OBJECT of result}"].splitlines()
    ]
    leaf = "Tensor(shape=[2, 3], dtype=float32, device=cpu, requires_grad=True)"
    assert told == ["ReluBackward0", "  MulBackward0", f"    AccumulateGrad  {leaf}", "    no gradient needed"]
    by_node = session.answers["tdbg-graph {NODE of result}"]
    assert by_node == session.answers["tdbg-graph {OBJECT of result}"]
    assert "has no grad_fn" in session.answers["tdbg-graph {OBJECT of plain}"]


@pytest.mark.parametrize("where", ["0x10", "$sp"])
def test_no_tensor_there(session: Session, where: str) -> None:
    answer = session.answers[f"tdbg-tensor {where}"]
    assert re.match(r"error: (no tensor at|Cannot access memory at address) 0x", answer)
    assert len(answer.splitlines()) == 1


def functions(answer: str) -> list[str]:
    return [line.strip().split(": ")[0] for line in answer.splitlines() if line.startswith("    ")]


def test_breaks_that_were_asked_for_before_torch_was_loaded(session: Session) -> None:
    assert "torch is not loaded yet; add is looked up when it is" in session.output
    assert "at::_ops::add_Tensor::call: the dispatcher's entry of aten::add.Tensor" in session.output
    assert "at::_ops::add_Scalar::call: the dispatcher's entry of aten::add.Scalar" in session.output
    assert "tdbg-break nosuchoperator: no function of torch is called nosuchoperator" in session.output


def test_breaks_of_all_kinds(session: Session) -> None:
    answers = session.answers
    assert "at::native::structured_mm_out_cpu::impl" in functions(answers["tdbg-break mm -native"])
    assert functions(answers["tdbg-break AddBackward0"]) == ["torch::autograd::generated::AddBackward0::apply"]
    assert functions(answers["tdbg-break aten::add.out"]) == ["at::_ops::add_out::call"]
    relu = functions(answers["tdbg-break relu -all"])
    assert {"at::_ops::relu::call", "at::native::relu", "torch::autograd::generated::ReluBackward0::apply"} <= set(relu)
    if is_stripped(session):
        assert "stripped" in answers["tdbg-break Tensor.mm"]
        assert "stripped" in answers["tdbg-break at::native::add_kernel"]
    else:
        assert functions(answers["tdbg-break Tensor.mm"]) == ["torch::autograd::THPVariable_mm"]
        expected = ["at::native::(anonymous namespace)::add_kernel"]
        assert functions(answers["tdbg-break at::native::add_kernel"]) == expected
        assert "torch::autograd::THPVariable_relu" in relu


def test_no_break_is_in_a_jump_table(session: Session) -> None:
    """gdb 13 would stop at every call of an exported function once more."""
    places = [line for line in session.answers["info breakpoints"].splitlines() if "@plt" in line]
    assert all(re.match(r"\d+\.\d+ +n ", line) for line in places)


def test_unknown_names_have_suggestions(session: Session) -> None:
    assert "did you mean softmax" in session.answers["tdbg-break sofmax"]
    assert "-no is no option" in session.answers["tdbg-break -no add"]
    assert "needs a name" in session.answers["tdbg-break"]


@pytest.fixture
def in_add(ask: Ask, gdb: str, torch_python: str) -> Session:
    return ask("in-add", gdb, torch_python, IN_ADD, then=["tdbg-break add.Tensor", "continue"])


def test_arguments_in_registers(in_add: Session) -> None:
    """self of add comes in the second register: the first one has the place of the result."""
    told = table(in_add.answers["tdbg-tensor $rsi"])
    assert (told["shape"], told["requires_grad"], told["elements"]) == ("[2, 2]", "True", "[1.0, 1.0, 1.0, 1.0]")
    assert "AutogradCPU wins" in in_add.answers["tdbg-keys $rsi"]
