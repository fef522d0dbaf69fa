"""Backtraces by real gdbs, of real processes that stand still."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbench_dbg.debugger import leftovers
from torchbench_dbg.debugger.backtrace import Backtrace, NativeFrame, capture, from_json, to_json
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.errors import DebuggerError, PtraceForbidden

from .conftest import HERE, Stopped, names, require_gdb

Start = Callable[..., Stopped]
Programs = dict[str, Path]


def frame_of(backtrace: Backtrace, function: str) -> NativeFrame:
    return next(frame for frame in backtrace.frames if frame.function == function)


def test_lines_arguments_and_locals(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    found = capture(gdb, process.pid)
    assert names(found)[:4] == ["ready", "innermost", "around", "main"]
    assert found.warnings == ()
    assert found.gdb_version.split(".")[0] == str(gdb.version[0]) or str(gdb.version[0]) in found.gdb_version
    inner = frame_of(found, "innermost")
    assert (Path(inner.file or "").name, inner.inline) == ("program.c", False)
    source = (HERE / "program.c").read_text().splitlines()
    assert "ready();" in source[(inner.line or 0) - 1]
    values = {each.name: each.value for each in (*inner.arguments, *inner.locals)}
    assert (values["number"], values["doubled"]) == ("40", "80")
    assert '"a text"' in values["text"]
    assert {each.name: each.type for each in inner.arguments}["place"] == "struct point *"
    assert "unreadable" in values["nowhere"] or "0x8" in values["nowhere"]
    around = frame_of(found, "around")
    assert {each.name: each.value for each in around.locals}["place"] == "{x = 21, y = 22}"
    assert Path(around.library or "").name == "libexample.so"
    assert from_json(to_json(found)) == found


def test_offsets_are_those_of_the_symbol_table(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    found = capture(gdb, stopped(str(programs["debug"])).pid)
    for name in ("innermost", "around"):
        frame = frame_of(found, name)
        table = subprocess.run(["nm", "-S", str(frame.library)], capture_output=True, text=True, check=True).stdout
        start, size = next(
            (int(part, 16) for part in line.split()[:2]) for line in table.splitlines() if line.endswith(f"T {name}")
        )
        assert start < (frame.offset_in_library or 0) < start + size


def test_a_stripped_program_shows_what_is_left(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["stripped"]))
    found = capture(gdb, process.pid)
    assert found.warnings == ()
    libraries = [Path(frame.library or "").name for frame in found.frames]
    assert libraries[0] == "program"
    assert libraries.index("libexample.so") < libraries.index("libc.so.6")
    around = frame_of(found, "around")  # exported, so its name is left
    assert (around.file, around.line, around.arguments, around.locals) == (None, None, (), ())
    assert found.frames[0].function is None
    assert found.frames[0].offset_in_library is not None


def test_the_process_is_left_as_it_was(gdb: Gdb, programs: Programs, build: str, stopped: Start) -> None:
    process = stopped(str(programs[build]))
    code = process.code()
    for _ in range(3):
        capture(gdb, process.pid, all_threads=True)
        assert process.state() == "T"
        assert tracer_of(process.pid) == "0"
    assert process.changed(code) == []
    os.kill(process.pid, signal.SIGCONT)
    process.wait_for("R")


def tracer_of(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("TracerPid"))


def test_all_threads(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    others = sorted(int(name) for name in os.listdir(f"/proc/{process.pid}/task") if int(name) != process.pid)
    found = capture(gdb, process.pid, all_threads=True)
    assert [thread.native_id for thread in found.threads] == [process.pid, *others]
    waiting = next(frame for frame in found.threads[1].frames if frame.function == "waiting")
    assert (Path(waiting.file or "").name, waiting.arguments) == ("program.c", ())  # of others frames only
    assert [thread.native_id for thread in capture(gdb, process.pid, thread=others[0]).threads] == others
    with pytest.raises(DebuggerError, match="thread 1 is not there"):
        capture(gdb, process.pid, thread=1)


def test_limit_and_no_variables(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    found = capture(gdb, process.pid, limit=2, want_locals=False)
    assert names(found) == ["ready", "innermost"]
    assert found.warnings == ("more than 2 frames: the outer ones are left out",)
    assert found.frames[1].arguments == found.frames[1].locals == ()


def test_sources_that_have_moved(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    found = capture(gdb, process.pid, source_paths=[(str(HERE), "/some where/else")])
    assert frame_of(found, "innermost").file == "/some where/else/program.c"


@pytest.mark.parametrize("program", ["debug", "stripped"])
def test_a_call_through_a_null_pointer_in_a_signal(gdb: Gdb, programs: Programs, stopped: Start, program: str) -> None:
    found = capture(gdb, stopped(str(programs[program]), "crash").pid)
    assert found.warnings == ()
    place = next(at for at, frame in enumerate(found.frames) if frame.pc == 0)
    outer = [Path(frame.library or "").name for frame in found.frames[place + 1 :]]
    assert outer[:3] == ["program", "libexample.so", "program"]
    assert outer[-1] == "program"  # _start
    if program == "debug":
        assert names(found)[place + 1 : place + 4] == ["jump_nowhere", "around", "main"]


def put_at_entry(pid: int, function: str) -> None:
    """Make a stopped process stand where `function` begins, called with 3 and 4 from where the process was."""
    system = require_gdb("system")
    steps = ["set $rsp = $rsp - 8", "set {unsigned long}$rsp = $pc", f"set $pc = (unsigned long)&{function}"]
    steps += ["set $rdi = 3", "set $rsi = 4"]
    command = [str(system.path), "-nx", "-batch", "-p", str(pid)]
    for step in steps:
        command += ["-ex", step]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def test_a_function_that_was_just_entered_is_run_to_its_first_line(
    gdb: Gdb, programs: Programs, stopped: Start
) -> None:
    process = stopped(str(programs["debug"]))
    put_at_entry(process.pid, "enter")
    code = process.code()
    found = capture(gdb, process.pid, past_prologue=True)
    # The frames of the callers are found by what the prologue has pushed.
    assert names(found)[:5] == ["enter", "ready", "innermost", "around", "main"]
    assert {each.name: each.value for each in frame_of(found, "innermost").arguments}["number"] == "40"
    frame = found.frames[0]
    assert {each.name: each.value for each in frame.arguments} == {"first": "3", "second": "4"}
    assert frame.locals == ()  # `sum` is set by the line that comes next
    assert "int sum" in (HERE / "program.c").read_text().splitlines()[(frame.line or 0) - 1]
    assert (process.state(), process.changed(code)) == ("T", [])


def gdb_with(real: Gdb, folder: Path, *first: str) -> Gdb:
    """The same gdb, that does something else as soon as it has attached."""
    script = folder / "gdb"
    before = " ".join(f"-ex '{each}'" for each in first)
    script.write_text(f'#!/bin/sh\nexec {real.path} {before} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return Gdb(path=script, version=real.version, origin=real.origin)


def test_a_gdb_that_hangs_is_killed_and_the_process_still_stands(
    gdb: Gdb, programs: Programs, stopped: Start, tmp_path: Path
) -> None:
    process = stopped(str(programs["debug"]))
    code = process.code()
    hanging = gdb_with(gdb, tmp_path, "python import time; time.sleep(99)")
    started = time.monotonic()
    with pytest.raises(DebuggerError, match="did not end within 2 s"):
        capture(hanging, process.pid, timeout=2)
    assert time.monotonic() - started < 10
    process.wait_for("T")
    assert (tracer_of(process.pid), process.changed(code)) == ("0", [])
    assert "innermost" in names(capture(gdb, process.pid))


@pytest.mark.parametrize("milliseconds", [20, 60, 100, 150, 200, 300])
def test_gdb_killed_at_any_moment_leaves_a_stopped_process(
    gdb: Gdb, programs: Programs, stopped: Start, milliseconds: int
) -> None:
    process = stopped(str(programs["debug"]))
    put_at_entry(process.pid, "enter")
    code = process.code()
    with contextlib.suppress(DebuggerError):
        capture(gdb, process.pid, past_prologue=True, timeout=milliseconds / 1000)
    process.wait_for("T")
    assert process.changed(code) == []


def test_breakpoints_of_a_killed_gdb_are_taken_back(programs: Programs, stopped: Start) -> None:
    """The one that gdb sets in the loader, planted here: in most runs gdb is not killed in that moment."""
    process = stopped(str(programs["debug"]))
    code = process.code()
    line = next(line for line in code if "/ld-linux" in line)
    with open(f"/proc/{process.pid}/mem", "r+b") as memory:
        memory.seek(int(line.split("-")[0], 16) + 0x60)
        memory.write(b"\xcc")
    assert len(process.changed(code)) == 1
    assert leftovers.remove_breakpoints(process.pid) == 1
    assert process.changed(code) == []
    assert leftovers.remove_breakpoints(process.pid) == 0


def test_time_is_shared_out(gdb: Gdb, programs: Programs, stopped: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script in gdb stops by itself, and tells what it has, before gdb would be killed."""
    monkeypatch.setattr("torchbench_dbg.debugger.backtrace._SHARE_OF_SCRIPT", 0)
    found = capture(gdb, stopped(str(programs["debug"])).pid)
    assert found.warnings == ("time is up: the rest of the stacks and variables is left out",)
    assert found.frames[0].arguments == ()


def test_a_process_that_is_traced_already(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    command = ["-nx", "-batch", "-p", str(process.pid), "-ex", "python import time; time.sleep(60)"]
    tracer = subprocess.Popen([str(gdb.path), *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while tracer_of(process.pid) == "0" and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(PtraceForbidden, match=f"is traced by process {tracer.pid} already"):
            capture(gdb, process.pid)
    finally:
        tracer.kill()
        tracer.wait()


def test_a_process_that_has_ended(gdb: Gdb, programs: Programs, stopped: Start) -> None:
    process = stopped(str(programs["debug"]))
    os.kill(process.pid, signal.SIGKILL)
    process.wait_for("Z")
    with pytest.raises(DebuggerError, match="has ended"):
        capture(gdb, process.pid)
