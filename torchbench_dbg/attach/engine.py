"""From a process number to the record of its stacks."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from torchbench_dbg import __version__
from torchbench_dbg.attach.moment import Groups, Moment, look, open_moment
from torchbench_dbg.attach.record import StacksRecord, Thread
from torchbench_dbg.attach.states import thread_state
from torchbench_dbg.crash import stacks
from torchbench_dbg.crash.python_frames import PythonStacks
from torchbench_dbg.crash.unwind import Unwinder
from torchbench_dbg.trace import architecture, layers, procfs, ptrace
from torchbench_dbg.trace.record import Frame

_BLAS = ("mkl_", "cblas_", "dnnl_", "sgemm", "dgemm")
_TORCH = ("libtorch", "libc10", "_C.")


def attach(pid: int, *, everything: bool = False) -> StacksRecord:
    """Look at a process once. `everything`: the interpreter's own frames too.

    TargetError if it is not there, PtraceForbidden if it may not be looked at.
    """
    machine = architecture.current()
    moment = open_moment(pid)
    try:
        python, note = _python(moment)
        states = {tid: thread_state(pid, tid) for tid in ptrace.threads(pid)}
        look(moment, machine, python.of_thread if python else None)
        threads = list(_threads(moment, states, everything))
    finally:
        moment.memory.close()
    notes = [note] if note else []
    if moment.missed:
        notes.append(f"{moment.missed} threads did not stand still in time (in a system call): they are not shown")
    return StacksRecord(
        tdbg=__version__,
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        pid=pid,
        command=procfs.command_line(pid),
        stopped=round(moment.stopped, 2),
        threads=tuple(threads),
        notes=tuple(notes),
    )


def _python(moment: Moment) -> tuple[PythonStacks | None, str]:
    """The reader of Python's frames; its many small reads go by pages."""
    python, note = stacks.find_python(moment)
    if python is not None:
        python.reads_by(moment.memory.read_by_page)
    elif not note:
        note = "no Python is loaded in this process: only native frames are shown"
    return python, note


def _threads(moment: Moment, states: dict[int, str], everything: bool) -> list[Thread]:
    unwinder = Unwinder(moment)
    found = []
    for state in sorted(moment.threads, key=lambda thread: thread.native_id != moment.pid):
        native = list(stacks.native_frames(unwinder, state, {}))
        groups: Groups = moment.python.get(state.native_id, [])
        loops = [stacks.is_loop(frame) for frame in native]
        frames = _unfolded(native, groups, loops) if everything else stacks.merge(native, groups, loops=loops)
        found.append(
            Thread(
                native_id=state.native_id,
                name=state.name,
                state=states.get(state.native_id, ""),
                frames=tuple(frames),
                layers=tuple(layer_of(frame) for frame in frames),
            )
        )
    return found


def _unfolded(native: Sequence[Frame], groups: Groups, loops: Sequence[bool]) -> list[Frame]:
    """Every native frame, the Python frames of a call of the evaluation loop before it."""
    rest, frames = list(groups), []
    for frame, is_loop in zip(native, loops, strict=True):
        if is_loop and rest:
            frames += [stacks.python_frame(each) for each in rest.pop(0)]
        frames.append(frame)
    return frames


def layer_of(frame: Frame) -> str:
    """The layer of a frame of torch's libraries or of Python, "" of anything else."""
    if frame.kind == "python":
        return "python"
    library = (frame.library or "").rpartition("/")[2]
    return layers.layer_of(frame.name, blas=frame.name.startswith(_BLAS)) if library.startswith(_TORCH) else ""
