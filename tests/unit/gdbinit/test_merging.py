"""How native frames and Python frames become one stack."""

from __future__ import annotations

import pytest
from tdbg_merging import NativeFrame, folded, in_width, is_loop, merge, short_path, version_in_name, waits_for_gil
from tdbg_python_stacks import PythonFrame

PYTHON, TORCH, LIBC = "/env/lib/libpython3.11.so.1.0", "/env/torch/lib/libtorch_cpu.so", "/lib/libc.so.6"


def native(*places: tuple[str | None, str]) -> list[NativeFrame]:
    return [NativeFrame(level, level, name, library) for level, (name, library) in enumerate(places)]


def python(*names: str) -> list[PythonFrame]:
    return [PythonFrame(name, "/work/train.py", 1) for name in names]


def names(frames: list[object]) -> list[str | None]:
    return [frame.function for frame in frames]  # type: ignore[attr-defined]


LOOP = ("_PyEval_EvalFrameDefault", PYTHON)
CALL = ("_PyObject_Call", PYTHON)


def test_python_stands_where_the_loop_ran_it() -> None:
    frames = native(
        ("add_kernel", TORCH), ("THPVariable_add", TORCH), CALL, LOOP, CALL, ("hooks", TORCH), CALL, LOOP, CALL
    )
    merged = merge(frames, [python("step", "hook"), python("backward", "<module>")])
    assert names(merged.frames) == ["add_kernel", "THPVariable_add", "step", "hook", "hooks", "backward", "<module>"]
    assert merged.note == ""
    assert merged.frames[4].level == 5, "the number that `frame` takes"  # type: ignore[union-attr]


def test_everything() -> None:
    merged = merge(native(("f", TORCH), CALL, LOOP, CALL, ("clone3", LIBC)), [python("run")], everything=True)
    assert names(merged.frames) == ["f", CALL[0], "run", LOOP[0], CALL[0], "clone3"]


def test_where_the_interpreter_itself_is_at_work_it_is_shown() -> None:
    merged = merge(native(("nanosleep", LIBC), ("time_sleep", PYTHON), CALL, LOOP), [python("wait")])
    assert names(merged.frames) == ["nanosleep", "time_sleep", "_PyObject_Call", "wait"]


def test_a_loop_that_was_just_entered_has_no_frame_yet() -> None:
    merged = merge(native(LOOP, CALL, ("hooks", TORCH), CALL, LOOP), [python("<module>")])
    assert names(merged.frames) == ["hooks", "<module>"]
    assert merged.note == ""


def test_how_a_thread_starts_is_left_out_but_a_program_that_embeds_python_is_not() -> None:
    started = merge(
        native(LOOP, ("pythread_wrapper", PYTHON), ("start_thread", LIBC), ("clone3", LIBC)), [python("run")]
    )
    assert names(started.frames) == ["run"]
    embedded = merge(native(LOOP, CALL, ("main", "/work/server"), ("__libc_start_call_main", LIBC)), [python("run")])
    assert names(embedded.frames) == ["run", "main"]


@pytest.mark.parametrize("frames", [[(None, PYTHON), (None, PYTHON)], [(None, "")]])
def test_without_a_known_loop_nothing_is_lost_and_the_note_says_so(frames: list[tuple[str | None, str]]) -> None:
    merged = merge(native(*frames), [python("inner"), python("outer")])
    assert names(merged.frames) == [*(name for name, _ in frames), "inner", "outer"]
    assert "can't be placed" in merged.note


def test_more_calls_of_python_than_loops() -> None:
    frames, groups = native(LOOP, ("f", TORCH)), [python("inner"), python("outer")]
    assert "guessed" in merge(frames, groups).note
    assert merge(frames, groups, is_cut=True).note == ""
    assert names(merge(frames, groups).frames) == ["inner", "f", "outer"]


def test_a_thread_without_python_stays_as_it_is() -> None:
    frames = native(("blas_thread_server", TORCH), ("start_thread", LIBC))
    assert merge(frames, []) == (frames, "")


def test_recursion_is_shown_once() -> None:
    frames = [*python("leaf"), *python("even", "odd") * 500, *python("main")]
    shown = [each if isinstance(each, str) else each.function for each in folded(frames)]
    assert shown == ["leaf", "even", "odd", "these 2 frames 499 times more", "main"]
    assert list(folded(python("a", "a", "b"))) == python("a", "a", "b")


def test_names_that_do_not_fit_lose_what_matters_least() -> None:
    name = "c10::impl::wrap_<c10::Functor_<at::Tensor (at::Tensor const&)>, at::Tensor>::call"
    assert in_width(name, 200) == name
    assert in_width(name, 60) == "c10::impl::wrap_<c10::Functor_<…>, at::Tensor>::call"
    assert in_width(name, 40) == "c10::impl::wrap_<…>::call"
    assert in_width("at::Tensor* at::native::f<int, float>", 30) == "at::native::f<int, float>"
    assert in_width("a_name_without_any_template_arguments", 10) == "a_name_without_any_template_arguments"


def test_the_version_and_the_loop_are_known_by_their_names() -> None:
    assert version_in_name("/usr/lib/libpython3.11.so.1.0") == (3, 11)
    assert version_in_name("/env/bin/python3.14 (deleted)") == (3, 14)
    assert version_in_name("/usr/lib/python3/dist-packages/x.so") is None
    assert version_in_name("/env/bin/python3-config") is None
    assert is_loop("_PyEval_EvalFrameDefault.localalias")
    assert is_loop("_TAIL_CALL_CALL_PY_EXACT_ARGS")
    assert not is_loop("_PyEval_EvalFrameDefaultish")
    assert not is_loop(None)


def test_paths_are_told_by_their_ends() -> None:
    assert short_path("/env/lib/python3.11/site-packages/torch/_tensor.py") == "torch/_tensor.py"
    assert short_path("/usr/lib/python3.11/asyncio/events.py") == "asyncio/events.py"
    assert short_path("/home/me/work/train.py") == "work/train.py"
    assert short_path("<string>") == "<string>"


def test_a_wait_for_the_gil_is_seen_at_the_top_only() -> None:
    waiting = native(("futex", LIBC), ("take_gil", PYTHON), ("PyEval_RestoreThread", PYTHON), LOOP)
    assert waits_for_gil(waiting)
    assert not waits_for_gil([*native(*[("f", TORCH)] * 6), *waiting])
