"""One stack out of two: native frames, in which each call of Python's evaluation loop is replaced by what it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from torchbench_dbg.crash.python_frames import PythonFrame, PythonStacks
from torchbench_dbg.crash.snapshot import Snapshot, ThreadState, Unreadable
from torchbench_dbg.crash.symbols import address_of
from torchbench_dbg.crash.unwind import MOST_FRAMES, RawFrame, Unwinder
from torchbench_dbg.trace.record import Frame

# With 3.14 compiled by clang each instruction is a function of its own, which the others jump to.
_LOOP = re.compile(r"_?PyEval_EvalFrameDefault\b|_TAIL_CALL_\w+")
_BEFORE_MAIN = frozenset(
    {"main", "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "clone", "__clone",
     "clone3", "__clone3", "start_thread"}
)  # fmt: skip
_PYTHON_FILE = re.compile(r"^(?:lib)?python(\d)\.(\d+)[a-z]*(?:\.so.*)?$")


def find_python(snapshot: Snapshot) -> tuple[PythonStacks | None, str]:
    """The reader of the process's Python frames, or why there is none ("" if it is no Python process)."""
    paths = {mapping.path for mapping in snapshot.mappings if mapping.path.startswith("/")}
    for path in sorted(paths, key=lambda path: not Path(path).name.startswith("lib")):
        named = _PYTHON_FILE.match(Path(path).name)
        if named is None:
            continue
        version = int(named[1]), int(named[2])
        try:
            runtime = address_of(snapshot, path, "_PyRuntime")
            if runtime is not None:
                return PythonStacks(snapshot.read, runtime, version), ""
        except (LookupError, Unreadable) as error:
            return None, f"Python frames are not shown: {error} (Python {version[0]}.{version[1]})."
    return None, ""


Details = Mapping[int, Sequence[Frame]]
"""Program counter -> the frames there, with lines and variables: a function, before it what is inlined into it."""


def native_frames(unwinder: Unwinder, thread: ThreadState, details: Details) -> Iterator[Frame]:
    for raw in unwinder.frames(thread):
        frame = _frame(raw)
        *inlined, last = details.get(raw.pc) or (frame,)
        yield from (each for each in inlined if not each.name.startswith("std::"))
        yield replace(last, name=frame.name, library=frame.library, address=frame.address)


def _frame(raw: RawFrame) -> Frame:
    place = f"{Path(raw.library).name}+{raw.offset or raw.pc:#x}" if raw.library else f"{raw.pc:#x}"
    name = raw.function or place
    return Frame(kind="native", name=name, library=raw.library, address=raw.offset or raw.pc)


def merge(native: Sequence[Frame], python: Sequence[Sequence[PythonFrame]], *, loops: Sequence[bool]) -> list[Frame]:
    """Innermost first. `python`: the frames of each call of the evaluation loop, `loops`: which frames are one."""
    return list(_merged(native, list(python), loops))


def _merged(native: Sequence[Frame], python: list[Sequence[PythonFrame]], loops: Sequence[bool]) -> Iterator[Frame]:
    # A loop that was just entered, or is about to be left, has no frame; such a one is the innermost.
    without_frames = max(0, sum(loops) - len(python)) if python else 0
    at_top = True  # nothing but the interpreter and the C library so far: there it died
    for frame, is_loop in zip(native, loops, strict=True):
        at_top = at_top and not is_loop and (is_interpreter(frame) or is_runtime(frame))
        if is_loop:
            if without_frames:
                without_frames -= 1
                continue
            yield from map(python_frame, python.pop(0) if python else ())
        elif is_interpreter(frame) and any(loops) and not at_top:
            continue  # how Python calls: vectorcall and its kin
        elif frame.name not in _BEFORE_MAIN and not (_is_unnamed(frame) and _RUNTIMES.match(_file_name(frame))):
            yield frame
    for group in python:  # the native stack was cut, or could not be followed so far
        yield from map(python_frame, group)


def is_loop(frame: Frame) -> bool:
    return bool(_LOOP.match(frame.name))


def is_interpreter(frame: Frame) -> bool:
    return bool(_PYTHON_FILE.match(_file_name(frame)))


def is_standard(frame: Frame) -> bool:
    """Whether a frame is Python's own, or an extension module's of its standard library."""
    return is_interpreter(frame) or "/lib-dynload/" in (frame.library or "")


_RUNTIMES = re.compile(r"^(?:lib(?:c|pthread|stdc\+\+|gcc_s|m|dl|ffi)[.-]|ld-linux|\[vdso\])")
_CHECKS = re.compile(r"^c10::(?:detail::torch(?:Check|InternalAssert)Fail|\w*Error::)")


def is_runtime(frame: Frame) -> bool:
    """Whether a frame is only where the news of the failure passed: the C library, libstdc++, a check of torch's."""
    return bool(_RUNTIMES.match(_file_name(frame))) or bool(_CHECKS.match(frame.name))


def _file_name(frame: Frame) -> str:
    return Path(frame.library or "").name


def _is_unnamed(frame: Frame) -> bool:
    return "+0x" in frame.name


def responsible(frames: Sequence[Frame]) -> Frame | None:
    """The innermost native frame that is not a runtime's; of Python's interpreter only if there is no other."""
    native = [frame for frame in frames if frame.kind == "native" and frame.library and not is_runtime(frame)]
    return next((frame for frame in native if not is_standard(frame)), native[0] if native else None)


def python_frame(frame: PythonFrame) -> Frame:
    return Frame(kind="python", name=frame.function, file=frame.file, line=frame.line)


def stacks_of(
    snapshot: Snapshot, failing: ThreadState, *, details: Details = MappingProxyType({})
) -> tuple[list[tuple[ThreadState, list[Frame]]], list[str]]:
    """The merged stack of each thread, that of `failing` first, and notes on what is missing.

    `details`: of that thread's native frames, where a debugger has given them.
    """
    unwinder = Unwinder(snapshot)
    python, note = find_python(snapshot)
    notes = [note] if note else []
    stacks = []
    others = [thread for thread in snapshot.threads if thread.native_id != failing.native_id]
    for thread in (failing, *others):
        native = list(native_frames(unwinder, thread, details if thread is failing else {}))
        groups = python.of_thread(thread.registers["fs_base"]) if python else []
        if thread is failing:
            notes += _left_out(native, python.left_out if python else 0)
        stacks.append((thread, merge(native, groups, loops=[is_loop(frame) for frame in native])))
    return stacks, notes


def _left_out(native: Sequence[Frame], python: int) -> Iterator[str]:
    if len(native) >= MOST_FRAMES:
        yield f"the native stack has more than {MOST_FRAMES} frames: only the innermost are shown."
    if python:
        yield f"the Python stack is deep: {python:,} frames in its middle are left out."
