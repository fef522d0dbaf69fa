"""Native and Python frames in one stack; lines of bytecode; long stacks; the record and its view."""

from __future__ import annotations

import io
import sys
from types import CodeType

import pytest
from rich.console import Console

from torchbench_dbg.crash import stacks, views
from torchbench_dbg.crash.folding import folded
from torchbench_dbg.crash.python_frames import PythonFrame
from torchbench_dbg.crash.record import Crash, CrashRecord, ThreadStack, from_json
from torchbench_dbg.diagnosis import catalogue
from torchbench_dbg.diagnosis.evidence import Evidence
from torchbench_dbg.diagnosis.matcher import diagnose
from torchbench_dbg.errors import RecordError
from torchbench_dbg.paths import import_from_gdbinit
from torchbench_dbg.trace.record import Frame

reader = import_from_gdbinit("tdbg_python_stacks")
PYTHON, TORCH, C = "/usr/lib/libpython3.11.so.1.0", "/torch/lib/libtorch_cpu.so", "/lib/libc.so.6"


def native(name: str, library: str | None = TORCH) -> Frame:
    return Frame(kind="native", name=name, library=library)


def python(*names: str) -> list[PythonFrame]:
    return [PythonFrame(function=name, file="x.py", line=1) for name in names]


def merged(frames: list[Frame], groups: list[list[PythonFrame]]) -> list[str]:
    return [frame.name for frame in stacks.merge(frames, groups, loops=[stacks.is_loop(frame) for frame in frames])]


LOOP = native("_PyEval_EvalFrameDefault", PYTHON)


def test_each_call_of_the_loop_is_replaced_and_plumbing_left_out() -> None:
    frames = [native("at::add"), native("_PyObject_MakeTpCall", PYTHON), LOOP, native("vectorcall", PYTHON),
              native("THPFunction_apply"), native("PyObject_Call", PYTHON), LOOP, native("Py_RunMain", PYTHON), native("main", C)]  # fmt: skip
    assert merged(frames, [python("inner", "middle"), python("outer")]) == [
        "at::add", "inner", "middle", "THPFunction_apply", "outer",
    ]  # fmt: skip


def test_the_interpreter_is_shown_where_it_died() -> None:
    frames = [native("abort", C), native("list_dealloc", PYTHON), LOOP, native("Py_RunMain", PYTHON)]
    assert merged(frames, [python("f")]) == ["abort", "list_dealloc", "f"]


def test_a_loop_that_was_just_entered_has_no_frame_yet() -> None:
    assert merged([LOOP, native("f"), LOOP, native("g")], [python("outer")]) == ["f", "outer", "g"]


def test_python_frames_are_not_lost_where_the_native_stack_is_cut() -> None:
    assert merged([native("f"), native("f")], [python("inner"), python("outer")]) == ["f", "f", "inner", "outer"]


def test_the_responsible_frame() -> None:
    def responsible(*frames: Frame) -> str | None:
        found = stacks.responsible(frames)
        return found.name if found else None

    assert responsible(native("abort", C), native("c10::detail::torchCheckFail"), native("at::add")) == "at::add"
    assert (
        responsible(native("strlen", C), native("PyUnicode_New", PYTHON), native("f", "/x/lib-dynload/_a.so"))
        == "PyUnicode_New"
    )
    assert responsible(native("0x10", None), native("f", "/x.so")) == "f"
    assert responsible(native("abort", C)) is None


def code_of(source: str) -> CodeType:
    return compile(source, "x.py", "exec")


def test_lines_as_python_itself_has_them() -> None:
    code = code_of(
        "x = 1\n\n\ny = (x +\n   2)\nfor z in range(3):\n    print(z,\n\n\n      y)\n" + "\n" * 300 + "w = 5\n"
    )
    line_of = reader.line_of_locations if sys.version_info >= (3, 11) else reader.line_of_ranges
    places = [(start, line) for start, end, line in code.co_lines() for start in range(start, end, 2)]
    assert places
    assert [(at, line_of(code.co_linetable, code.co_firstlineno, at)) for at, _ in places] == places


def test_lines_of_3_10() -> None:
    table = bytes([4, 1, 6, 0x80, 2, 256 - 2])  # 4 bytes a line further, 6 of no line, 2 two lines back
    assert [reader.line_of_ranges(table, 10, at) for at in (0, 2, 4, 8, 10, 12)] == [11, 11, None, None, 9, None]


def test_recursion_is_folded() -> None:
    frames = [native("main"), *[native("a"), native("b")] * 50, native("end")]
    assert [each if isinstance(each, str) else each.name for each in folded(frames)] == [
        "main", "a", "b", "these 2 frames, 50 times", "end",
    ]  # fmt: skip


def record() -> CrashRecord:
    evidence = Evidence(signal=("SIGSEGV",), fault=("null",))
    crash = Crash(
        pid=77,
        command="python train.py --name 'a b'",
        is_script=True,
        signal="SIGSEGV",
        fault="null",
        fault_text="address 0x8: a null pointer, and a field 8 bytes behind it",
        address=8,
        failing_function="at::native::add_kernel(at::TensorIteratorBase&, c10::Scalar const&)",
        failing_library="/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
        threads=(
            ThreadStack(native_id=77, name="python", frames=(native("at::native::add_kernel(int)"), Frame(kind="python", name="main", file="/none/train.py", line=7))),
            ThreadStack(native_id=78, name="pool", frames=()),
        ),
        diagnoses=diagnose(catalogue.load("crash"), evidence),
    )  # fmt: skip
    return CrashRecord(reason="crash", command=("python", "train.py"), exit_code=139, crashes=(crash,))


def test_record_goes_to_json_and_back() -> None:
    assert from_json(record().to_json()) == record()
    with pytest.raises(RecordError):
        from_json({"schema": "tdbg.crash/9"})
    with pytest.raises(RecordError):
        from_json({**record().to_json(), "reason": "fun"})


@pytest.mark.parametrize("width", [80, 120])
def test_view_fits_and_says_all(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    for line in views.lines(record()):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    flat = " ".join(text.split())
    for said in ("segmentation fault (SIGSEGV)", "address 0x8", "torch/lib/libtorch_cpu.so", "train.py:7", "1 other thread",
                 "likely: a null pointer was used C070", "cause Code took", "fix the failing"):  # fmt: skip
        assert said in flat
