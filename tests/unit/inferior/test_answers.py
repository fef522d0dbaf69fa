"""Dispatcher dumps, failures, values: everything that is text."""

from __future__ import annotations

import json
import os

import pytest

from torchbench_dbg.inferior.channel import Channel
from torchbench_dbg.inferior.dispatch import key_names, operator_record, parse_dump
from torchbench_dbg.inferior.failures import format_traceback, raised_event
from torchbench_dbg.inferior.program import compile_expression
from torchbench_dbg.inferior.values import MAXIMUM_REPR, short_repr, type_name

DUMP = """\
name: aten::add.Tensor
schema: aten::add.Tensor(Tensor self, Tensor other) -> Tensor
debug: registered at build/RegisterSchema.cpp:6
alias analysis kind: FROM_SCHEMA
CPU: registered at build/RegisterCPU_0.cpp:1297 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Meta: registered at /site packages/torch/_meta.py:54 :: (none) [ boxed ]
Meta (inactive): registered at build/RegisterMeta_0.cpp:1106 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Named: registered at Named.cpp:11 :: (none) [ fallthrough boxed ]
Autograd[alias]: registered at gen/VariableType_2.cpp:10455 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
"""


def test_a_dump_gives_schema_places_and_kinds() -> None:
    schema, registrations, kernels = parse_dump(DUMP)
    assert schema == "aten::add.Tensor(Tensor self, Tensor other) -> Tensor"
    assert registrations == {
        "CPU": "build/RegisterCPU_0.cpp:1297",
        "Meta": "/site packages/torch/_meta.py:54",
        "Named": "Named.cpp:11",
        "Autograd": "gen/VariableType_2.cpp:10455",
    }
    assert (kernels["Named"], kernels["CPU"]) == ("fallthrough boxed", "boxed unboxed")


@pytest.mark.parametrize("dump", ["", "schema: (none", "CPU: registered at", "\0", "name: x\nCPU: nothing"])
def test_any_text_is_taken_for_a_dump(dump: str) -> None:
    assert parse_dump(dump)[1:] == ({}, {})


@pytest.mark.parametrize("raw", [0, -1, 2**64, True, None, "1", 1.5])
def test_what_is_no_key_set_has_no_keys(raw: object) -> None:
    assert key_names(None, raw) == []


def test_questions_about_a_broken_torch_are_answered() -> None:
    assert key_names(object(), 1) == []
    assert operator_record(object(), "aten::add") is None


def test_a_syntax_error_gives_its_place() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile_expression("x = 1\ny = = 2")
    event = raised_event("compile", caught.value, ["<expr>"])
    assert (event["line"], event["offset"], event["text"].strip()) == (2, 5, "y = = 2")
    json.dumps(event)


def test_an_exception_that_can_t_be_printed_is_reported() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    event = raised_event("expression", Hostile())
    assert event["message"] == "<unprintable: RuntimeError>"
    assert "Hostile" in format_traceback(Hostile())


def test_reprs_are_short_and_of_one_line() -> None:
    assert short_repr([1, 2]) == "[1, 2]"
    assert "\n" not in short_repr("x\n" * 1000 + "y")
    assert len(short_repr(list(range(10_000)))) == MAXIMUM_REPR
    assert (type_name(1), type_name(os.stat(".")), type_name(short_repr)) == (
        "int",
        "os.stat_result",
        "function",
    )


def test_lines_arrive_whole_however_they_are_cut() -> None:
    control_read, control_write = os.pipe()
    events_read, events_write = os.pipe()
    channel = Channel(control_read, events_write)
    os.write(control_write, b'{"command": "go"}\n{"comm')
    assert channel.receive() == {"command": "go"}
    os.write(control_write, b'and": "exit"}\n[1]\n')
    assert channel.receive() == {"command": "exit"}
    with pytest.raises(ValueError, match="not a JSON object"):
        channel.receive()
    os.close(control_write)
    assert channel.receive() is None
    channel.send({"event": "é\udc80"})
    assert json.loads(os.read(events_read, 100)) == {"event": "é\udc80"}
    assert not os.get_inheritable(control_read)
    for descriptor in (control_read, events_read, events_write):
        os.close(descriptor)
