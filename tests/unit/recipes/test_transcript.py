"""The transcript: its JSON form, and what a person sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from rich.console import Console, RenderableType

from torchbench_dbg.errors import RecordError
from torchbench_dbg.recipes.record import Expectation, from_json
from torchbench_dbg.recipes.runner import _check
from torchbench_dbg.recipes.views import output, transcript

from . import samples


def drawn(lines: Iterable[RenderableType], width: int = 80) -> str:
    console = Console(width=width, color_system=None, highlight=False, markup=False)
    with console.capture() as captured:
        for line in lines:
            console.print(line)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def test_json_there_and_back() -> None:
    record = samples.transcript(samples.exchange(note="why", expectations=(samples.UNMET,)), status="red", failure="x")
    assert from_json(json.loads(json.dumps(record.to_json()))) == record


def test_a_damaged_transcript_is_refused() -> None:
    data = samples.transcript().to_json()
    with pytest.raises(RecordError, match="status"):
        from_json({**data, "status": "purple"})


def test_a_transcript_reads_as_it_was_typed() -> None:
    met = samples.exchange(note="It is one.", expectations=(Expectation(pattern="1", met=True),))
    assert drawn(transcript.lines(samples.transcript(met))) == (
        "sum  one and two\n"
        "python 3.11.7 · torch 2.13.0 · gdb 18.1\n"
        "\n"
        "Sums.\n"
        "watch the result\n"
        "\n"
        f"pdb first: the sum {'─' * 61}\n"
        "\n"
        "┃ It is one.\n"
        "(Pdb) p a\n"
        "1\n"
        "\n"
        f"{'─' * 80}\n"
        "✓ first, p a: 1\n"
        "green: 1 of 1 expectations met · 1.5 s\n"
        "next  tdbg trace 'a + b'"
    )


def test_what_was_not_printed_stands_under_the_output() -> None:
    record = samples.transcript(samples.exchange(expectations=(samples.UNMET,)), status="red", failure="no 2")
    shown = drawn(transcript.lines(record))
    assert "(Pdb) p a\n1\n✗ not printed: 2\n" in shown
    assert shown.index("✗ first, p a: 2") < shown.index("red: 0 of 1 expectations met") < shown.index("no 2")


def test_a_skipped_recipe_says_what_it_needs() -> None:
    record = samples.transcript(status="skipped", failure="needs a GPU", stages=(), target={})
    assert "skipped: needs a GPU" in drawn(transcript.lines(record))


GDB = """\
Thread 1 "python" hit Temporary breakpoint 2, 0x00007fffe4155810 in at::native::structured_ufunc_add_CPU::impl(at::Tensor const&, c10::Scalar const&) () from /env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so
#0  0x00007fffe4155810 in at::native::structured_ufunc_add_CPU::impl(at::Tensor const&, c10::Scalar const&) () from /env/lib/libtorch_cpu.so
#1  0x00007fffe37f2282 in c10::impl::wrap_kernel_functor_unboxed_<c10::impl::detail::WrapFunctionIntoFunctor_<c10::CompileTimeFunctionPointer<at::Tensor (at::Tensor const&), &at::(anonymous namespace)::wrapper_CPU_add_Tensor>, at::Tensor>, at::Tensor (at::Tensor const&)>::call(c10::OperatorKernel*, at::Tensor const&) () from /env/lib/libtorch_cpu.so
#2  0x00007ffff7b64cef in method_vectorcall_VARARGS_KEYWORDS (func=0x7ffff6f48130, args=0x7fffffffe0f0) at Objects/descrobject.c:364
#3  vectorcall_unbound (nargs=<optimized out>) at Objects/typeobject.c:1641
#4  0x0000559a4e80e081 in _start ()
#5  0x00007ffff7b64cef in ffi_call () from /lib/x86_64-linux-gnu/libffi.so.8
(More stack frames follow...)"""


def test_gdbs_frames_are_readable() -> None:
    assert drawn(output.lines("gdb", GDB)).splitlines() == [
        'Thread 1 "python" hit Temporary breakpoint 2,',
        "at::native::structured_ufunc_add_CPU::impl  libtorch_cpu.so",
        "#0  at::native::structured_ufunc_add_CPU::impl  libtorch_cpu.so",
        "#1  c10::impl::wrap_kernel_functor_unboxed_<wrapper_CPU_add_Tensor>::call",
        "libtorch_cpu.so",
        "…   3 frames of the interpreter (#2–#4)",
        "#5  ffi_call  libffi.so.8",
        "…   more frames",
    ]


def test_what_info_symbol_says_is_readable() -> None:
    loop = "at::native::AVX2::VectorizedLoop2d<at::native::(anonymous namespace)::add_kernel(int)::{lambda()#1}>"
    printed = (
        f"void c10::function_ref<void (char**, long)>::callback_fn<{loop}>(long, char**, long) in section .text of /x/libtorch_cpu.so\n"
        "__memset_avx512 + 99 in section .text of /lib/libc.so.6"
    )
    assert drawn(output.lines("gdb", printed)).splitlines() == [
        "function_ref::callback_fn<AVX2::VectorizedLoop2d>  libtorch_cpu.so",
        "__memset_avx512 + 99 in section .text of /lib/libc.so.6",
    ]


def test_all_of_the_output_can_be_seen() -> None:
    assert drawn(output.lines("gdb", GDB, everything=True), width=1000) == GDB


PDB = """\
  /usr/lib/python3.11/bdb.py(600)run()
-> exec(cmd, globals, locals)
  <string>(1)<module>()
  /somewhere/train_min.py(12)<module>()
-> loss.backward()
> /env/lib/python3.11/site-packages/torch/_tensor.py(623)backward()
-> torch.autograd.backward(
*** NameError: name 'x' is not defined"""


def test_pdbs_own_frames_are_left_out() -> None:
    assert drawn(output.lines("pdb", PDB)).splitlines() == [
        "  /somewhere/train_min.py(12)<module>()",
        "-> loss.backward()",
        "> torch/_tensor.py(623)backward()",
        "-> torch.autograd.backward(",
        "*** NameError: name 'x' is not defined",
    ]


def test_expectations_are_looked_for_one_after_the_other() -> None:
    text = "inner\nmiddle\nouter"
    assert [each.met for each in _check(("inner", "^outer$"), text)] == [True, True]
    assert [each.met for each in _check(("outer", "inner"), text)] == [True, False]
