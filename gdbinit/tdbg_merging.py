"""One stack out of two: native frames, in which each call of Python's evaluation loop is replaced by what it ran.

Nothing here imports gdb.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Union

from tdbg_python_stacks import PythonFrame

LONGEST_CYCLE = 8  # frames of a recursion that are shown once
_LIBRARY = re.compile(r"/(?:lib)?python(\d)\.(\d+)[a-z]*(?:\.so[.\d]*)?(?: \(deleted\))?$")
# With 3.14 compiled by clang each instruction is a function of its own, which the others jump to.
_LOOP = re.compile(r"_?PyEval_EvalFrameDefault\b|_TAIL_CALL_\w+")
_STARTS = re.compile(r"_start$|__libc_start_|_*clone3?$|start_thread$")
_RUNTIME = re.compile(r"/(?:lib(?:c|pthread)[.-]|ld-linux)[^/]*$|^\[vdso\]|^$")
_WAITS_FOR_GIL = re.compile(r"take_gil\b")


class NativeFrame(NamedTuple):
    """A frame as gdb sees it. `level`: its number there. `function` without parameters, None if it has no name."""

    level: int
    pc: int
    function: str | None
    library: str  # path, "" where nothing is mapped from a file
    file: str = ""
    line: int = 0


Frame = Union[NativeFrame, PythonFrame]


class Merged(NamedTuple):
    """The frames, innermost first; `note`: what does not fit together, or ""."""

    frames: list[Frame]
    note: str = ""


def version_in_name(path: str) -> tuple[int, int] | None:
    """(3, 11) of .../libpython3.11.so.1.0 and of .../bin/python3.11; None of any other file."""
    found = _LIBRARY.search(path)
    return (int(found[1]), int(found[2])) if found else None


def is_loop(function: str | None) -> bool:
    """Whether a native function of this name is Python's evaluation loop."""
    return function is not None and _LOOP.match(function) is not None


def merge(
    native: Sequence[NativeFrame],
    groups: Sequence[Sequence[PythonFrame]],
    *,
    is_cut: bool = False,
    everything: bool = False,
) -> Merged:
    """`groups`: the frames of each call of the loop, innermost first. `is_cut`: there are more native frames.

    `everything`: the interpreter's own frames stay.
    """
    loops = [at for at, frame in enumerate(native) if is_loop(frame.function)]
    if not loops or not groups:
        note = "the Python frames can't be placed among the native ones: they stand below" if groups else ""
        return Merged([*native, *(frame for group in groups for frame in group)], note)
    surplus = len(loops) - len(groups)
    # A loop that was just entered, or is about to be left, has no frame; such a one is the innermost.
    ran = dict(zip(loops[max(0, surplus) :], groups))  # noqa: B905  # gdb may have a Python 3.9
    called = [at for at in range(loops[0]) if not _is_plumbing(native[at]) and not _RUNTIME.search(native[at].library)]
    at_top = called[0] if called else loops[0]  # before it the interpreter itself is at work
    frames: list[Frame] = []
    for at, frame in enumerate(native):
        frames += ran.get(at, ())
        if everything or at < at_top or not (at in loops or _is_plumbing(frame, outside=at > loops[-1])):
            frames.append(frame)
    beyond = groups[len(ran) :]
    frames += [frame for group in beyond for frame in group]
    if beyond and not is_cut:
        return Merged(frames, "%d calls of Python have no native frame: where they stand is guessed" % len(beyond))
    if surplus > 1:
        return Merged(frames, "%d calls of Python's loop run no frame that is known" % surplus)
    return Merged(frames)


def _is_plumbing(frame: NativeFrame, *, outside: bool = False) -> bool:
    """Whether a frame only tells how Python calls, or how the thread was started."""
    if version_in_name(frame.library):
        return True
    return outside and frame.function is not None and _STARTS.match(frame.function) is not None


def waits_for_gil(native: Sequence[NativeFrame]) -> bool:
    """Whether a thread's innermost frames are the wait for Python's lock."""
    return any(frame.function and _WAITS_FOR_GIL.match(frame.function) for frame in native[:6])


def folded(frames: Sequence[Frame]) -> Iterator[Frame | str]:
    """The frames, and instead of what a recursion repeats a line that says so."""
    at = 0
    while at < len(frames):
        length, times = _repetition(frames, at)
        yield from frames[at : at + length]
        if times > 1:
            what = "this frame" if length == 1 else "these %d frames" % length
            yield "%s %d times more" % (what, times - 1)
        at += length * times


def _repetition(frames: Sequence[Frame], start: int) -> tuple[int, int]:
    """(length, times) of the cycle that begins there, if it comes at least three times; else (1, 1)."""
    best = (1, 1)
    for length in range(1, LONGEST_CYCLE + 1):
        cycle, times = [place(frame) for frame in frames[start : start + length]], 1
        while [place(frame) for frame in frames[start + times * length : start + (times + 1) * length]] == cycle:
            times += 1
        if times > 2 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def place(frame: Frame) -> Hashable:
    """What makes two frames the same."""
    if isinstance(frame, PythonFrame):
        return frame
    return frame.function or frame.pc, frame.file or frame.library, frame.line


def in_width(name: str, room: int) -> str:
    """A C++ name; where it does not fit, without the return type, then without template arguments, innermost first."""
    if len(name) > room:
        name = re.sub(r"^(?:const )?[\w:]+(?: const)?[*&]* (?!\w+ )", "", name)
    while len(name) > room and (match := re.search(r"<[^<>]+>", name)):
        name = name[: match.start()] + "\0" + name[match.end() :]
    return name.replace("\0", "<…>")


def short_path(path: str) -> str:
    """A file by what tells it apart: from site-packages or the standard library on, else its last two parts."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2]
    inside = re.search(r"/python\d\.\d+/(?!.*/python\d)", path)
    return path[inside.end() :] if inside else os.path.join(*path.rsplit("/", 2)[-2:])
