"""Values of PyTorch's types as gdb prints them in an extension with debug information, held against Python's word."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tdbg_keys
import tdbg_layouts

from ..interpreters import require_torch
from .conftest import Ask, Session, table
from .expected import check, outline

LAYOUT = "python import json, tdbg_torch; print(json.dumps(tdbg_torch.layout_of_debug_information()))"
KEYS = "python print(tuple(tdbg_torch.key_table_of_debug_information()))"
NAMES = (
    "first result nothing maybe count dims scalar owner implementation storage storage_implementation small shape none "
    "type layout device accelerator keys negative fraction whole truth imaginary of_tensor of_int of_double of_bool "
    "of_none of_string of_device of_list cyclic name handle edge node no_edge undefined null.tensor unmapped.tensor "
    "wild.tensor nothing_there.tensor freed.tensor no_node *implementation *node"
).split()
COMMANDS = [
    *(f"print {name}" for name in NAMES),
    "print tensors",
    "tdbg-tensor first",
    "tdbg-tensor &undefined",
    "tdbg-tensor implementation",
    "tdbg-tensor freed.tensor",
    "tdbg-tensor wild.pointer",
    "tdbg-keys keys",
    "tdbg-keys first",
    "tdbg-graph result",
    "tdbg-graph node",
    "tdbg-graph edge",
    "tdbg-graph first",
    "tdbg-tensor",
    "tdbg-tensor nothing_is_called_so",
    LAYOUT,
    KEYS,
    "print /r undefined",
    "disable pretty-printer global tdbg",
    "print -raw-values off -- undefined",
]


@pytest.fixture
def session(ask: Ask, gdb: str, library: Path) -> Session:
    return ask("printers", gdb, require_torch(), COMMANDS, library=library, then=["up"], after=["delete", "continue"])


def printed(session: Session, name: str) -> str:
    return re.sub(r"^\$\d+ = ", "", session.answers[f"print {name}"].splitlines()[-1])


PRINTED = {
    "nothing": "nullopt",
    "count": "12",
    "dims": "ArrayRef<…> of 2 = {2, 3}",
    "scalar": "1.5",
    "small": "SmallVector<…> of 3 = {1, 2, 3}",
    "shape": "ArrayRef<…> of 2 = {2, 3}",
    "none": "ArrayRef<…> of 0",
    "type": "c10::ScalarType::Float (float32)",
    "layout": "c10::Layout::Strided (strided)",
    "device": "cpu",
    "accelerator": "cuda:3",
    "negative": "-7",
    "fraction": "0.5",
    "whole": "3",
    "truth": "True",
    "imaginary": "1.0-2.0j",
    "of_int": "IValue(Int -4)",
    "of_double": "IValue(Double 2.5)",
    "of_bool": "IValue(Bool True)",
    "of_none": "IValue(None)",
    "of_string": 'IValue(String "text")',
    "of_device": "IValue(Device cuda:3)",
    "of_list": "IValue(GenericList of 6: IValue(Int 1), IValue(Int 2), IValue(Int 3), IValue(Int 4), …)",
    "name": "aten::add.Tensor",
    "handle": "OperatorHandle(aten::add.Tensor)",
    "no_edge": "Edge(none)",
    "undefined": "Tensor(undefined=True)",
    "null.tensor": "Tensor(undefined=True)",
    "unmapped.tensor": "<no tensor at 0x10: freed, or never made>",
    "wild.tensor": "<no tensor at 0xdead00000000beef: freed, or never made>",
    "no_node": "null",
}
PATTERNS = {
    "storage": r"Storage\(data=0x[0-9a-f]+, nbytes=24, references=\d\)",
    "storage_implementation": r"0x[0-9a-f]+ Storage\(data=0x[0-9a-f]+, nbytes=24, references=\d\)",
    "edge": r"Edge\(input 0 of MulBackward\d\(next_edges=1\) at 0x[0-9a-f]+\)",
    "node": r"0x[0-9a-f]+ MulBackward\d\(next_edges=1\) at 0x[0-9a-f]+",
    "*node": r"MulBackward\d\(next_edges=1\) at 0x[0-9a-f]+",
    "nothing_there.tensor": r"<no tensor at 0x[0-9a-f]+: freed, or never made>",
    "freed.tensor": r"<no tensor at 0x[0-9a-f]+: freed, or never made>",
    "cyclic": r"IValue\((GenericList of 1: IValue\(){3}GenericList c10::detail::ListImpl at 0x[0-9a-f]+\)+",
}


def test_values_of_all_types(session: Session) -> None:
    assert {name: printed(session, name) for name in PRINTED} == PRINTED
    for name, pattern in PATTERNS.items():
        assert re.fullmatch(pattern, printed(session, name)), (name, printed(session, name))


def test_tensors_however_they_are_held(session: Session) -> None:
    leaf, plain = (outline(session.tensors[name]) for name in ("leaf", "plain"))
    assert printed(session, "first").endswith(leaf)  # gdb puts the address of a reference in front
    assert printed(session, "owner") == leaf
    assert printed(session, "*implementation") == leaf
    assert printed(session, "implementation") == f"{session.tensors['leaf']['address']:#x} {leaf}"
    assert printed(session, "of_tensor") == f"IValue(Tensor {leaf})"
    assert printed(session, "maybe").endswith(plain)


def test_every_kind_of_tensor_in_a_list(session: Session) -> None:
    lines = [outline(facts) for facts in session.tensors.values()]
    assert printed(session, "tensors") == f"ArrayRef<…> of {len(lines)} = {{{', '.join(lines)}}}"


def test_key_sets(session: Session) -> None:
    names = session.tensors["leaf"]["keys"][len("DispatchKeySet(") : -1]
    assert re.fullmatch(rf"DispatchKeySet\(0x[0-9a-f]+: {names}\)", printed(session, "keys"))
    # What a function was called with is taken as it is; autocast is in the set of every tensor, and is off.
    assert session.answers["tdbg-keys keys"].splitlines()[1].strip() == "AutocastCPU wins"
    assert session.answers["tdbg-keys first"].splitlines()[1].startswith("  AutogradCPU wins")


def test_tensors_are_found_by_expressions(session: Session) -> None:
    for command in ("tdbg-tensor first", "tdbg-tensor implementation"):
        check(table(session.answers[command]), session.tensors["leaf"], command)
    assert table(session.answers["tdbg-tensor &undefined"]) == {"undefined": "True"}


def test_graphs(session: Session) -> None:
    leaf = outline(session.tensors["leaf"])
    for command in ("tdbg-graph result", "tdbg-graph node", "tdbg-graph edge"):
        first, second = session.answers[command].splitlines()
        assert re.fullmatch(r"MulBackward\d at 0x[0-9a-f]+", first)
        assert re.fullmatch(r"  AccumulateGrad at 0x[0-9a-f]+  " + re.escape(leaf), second)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("tdbg-tensor freed.tensor", "no tensor at 0x"),
        ("tdbg-tensor wild.pointer", "Cannot access memory at address 0xdead00000000beef"),
        ("tdbg-graph first", "has no grad_fn: it is a leaf"),
        ("tdbg-tensor", "needs an argument: help tdbg-tensor"),
        ("tdbg-tensor nothing_is_called_so", 'No symbol "nothing_is_called_so" in current context.'),
    ],
)
def test_what_can_not_be_shown_is_told_in_one_line(session: Session, command: str, said: str) -> None:
    answer = session.answers[command]
    assert answer.startswith("error: ")
    assert said in answer
    assert len(answer.splitlines()) == 1


def test_raw_and_switched_off(session: Session) -> None:
    assert "target_ = 0x" in session.answers["print /r undefined"]
    assert (
        "target_ = 0x" in session.answers["print undefined"] or "undefined=True" in session.answers["print undefined"]
    )


def test_the_table_of_layouts_is_what_the_compiler_made_of_the_headers(session: Session) -> None:
    described = json.loads(session.answers[LAYOUT])
    version = tuple(map(int, session.facts["version"].split(".")[:2]))
    known = tdbg_layouts.layout_of(version)
    assert set(known) - set(described) == {"backward_view", "variable"}
    assert described == {name: known[name] for name in described}


def test_the_table_of_keys_is_that_of_the_enumerations(session: Session) -> None:
    version = tuple(map(int, session.facts["version"].split(".")[:2]))
    assert session.answers[KEYS].strip() == str(tuple(tdbg_keys.table_of(version)))


def test_the_program_goes_on_unharmed(session: Session) -> None:
    assert "exited normally" in session.output
