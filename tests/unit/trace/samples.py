"""A small record, made by hand: a Python line calls an operator, whose kernel runs in a library."""

from __future__ import annotations

from torchbench_dbg.trace.record import (
    Call,
    Code,
    Frame,
    Function,
    Library,
    Name,
    Operator,
    Result,
    Stop,
    TargetFacts,
    Thread,
    TraceRecord,
    Variable,
)


def make_record() -> TraceRecord:
    functions = (
        Function(
            library=0, offset=16, symbol="_ZN2at4_ops3add4callEv", name="at::_ops::add::call()", layer="dispatcher"
        ),
        Function(
            library=0, offset=64, symbol="_Z10add_kernelv", name="add_kernel()", layer="kernel", file="K.cpp", line=3
        ),
    )
    return TraceRecord(
        tdbg="0",
        created="2026-01-01T00:00:00+00:00",
        expression="a + b",
        setup=None,
        script=None,
        script_line=None,
        cold=False,
        names=(Name(name="a", description="float32"),),
        target=TargetFacts(executable="python", python="3.11", torch="2", git_version=None, debug=False, cuda=False),
        libraries=(
            Library(path="/lib/libtorch_cpu.so", build_id="ab", symbols="symtab", functions=2, has_dwarf=False),
        ),
        threads=(Thread(id=1, name="python", main=True),),
        functions=functions,
        codes=(Code(name="?", file=None, line=None, c=False), Code(name="<module>", file="<expr>", line=1, c=False)),
        calls=(
            Call(parent=-1, kind="python", ref=1, thread=1),
            Call(parent=0, kind="native", ref=0, thread=1, line=1, keys=65537),
            Call(parent=1, kind="native", ref=1, thread=1, tail=True),
        ),
        key_sets={"65537": ("CPU",)},
        operators=(
            Operator(symbol="add", name="aten::add", schema="add() -> Tensor", registrations={"CPU": "R.cpp:1"}),
        ),
        forward_operators={},
        status="finished",
        status_detail=None,
        failure=None,
        result=Result(text="tensor(1)", type="Tensor", digest="00"),
        stops=(
            Stop(
                reason="break",
                title="add_kernel",
                thread=1,
                call=2,
                frames=(
                    Frame(
                        kind="native",
                        name="add_kernel",
                        line=3,
                        file="K.cpp",
                        arguments=(Variable(name="n", type="int", value="1"),),
                    ),
                ),
            ),
        ),
        notes=("a note",),
        seconds={"total": 1.5},
    )
