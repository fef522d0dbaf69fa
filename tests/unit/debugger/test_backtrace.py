"""What gdb's answer becomes, without a gdb."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg import process
from torchbench_dbg.debugger import backtrace, leftovers
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.errors import DebuggerError, PtraceForbidden
from torchbench_dbg.trace import procfs

GDB = Gdb(path=Path("/opt/gdb"), version=(18, 1), origin="--gdb")
FRAME: dict[str, Any] = {
    "level": 0,
    "pc": 0x7F0000001234,
    "function": "at::add",
    "library": "/opt/libtorch_cpu.so",
    "offset_in_library": 0x1234,
    "file": "add.cpp",
    "line": 7,
    "inline": False,
    "arguments": [{"name": "self", "type": "at::Tensor &", "value": "Tensor(undefined=True)"}],
    "locals": [],
}
THREAD = {"native_id": 42, "name": "python", "frames": [FRAME]}
ANSWER: dict[str, Any] = {"gdb": "18.1", "threads": [THREAD], "warnings": [], "error": None}
Run = Callable[..., process.Completed]


def gdb_that(answer: dict[str, Any] | None, seen: dict[str, Any], stderr: str = "", returncode: int = 0) -> Run:
    """Stands in for process.run: answers on the private descriptor."""

    def run(argv: list[str], **options: Any) -> process.Completed:
        seen.update(argv=argv, request=json.loads(options["env"]["TDBG_BACKTRACE"]), **options)
        if answer is not None:
            os.write(options["pass_fds"][0], json.dumps(answer).encode())
        return process.Completed(returncode=returncode, stdout="", stderr=stderr)

    return run


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(procfs, "status", lambda pid: {"State": "T (stopped)", "TracerPid": "0"})
    return {}


def test_records(monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any]) -> None:
    monkeypatch.setattr(process, "run", gdb_that(ANSWER, seen))
    found = backtrace.capture(GDB, 42, libraries=[], source_paths=[("/py torch", '/a "b\\c')], timeout=10)
    assert (found.thread, found.gdb_version, found.warnings) == (42, "18.1", ())
    assert found.frames[0].function == "at::add"
    assert found.frames[0].arguments[0].value == "Tensor(undefined=True)"
    assert backtrace.from_json(json.loads(json.dumps(backtrace.to_json(found)))) == found
    assert (seen["request"]["thread"], seen["request"]["libraries"], seen["request"]["seconds"]) == (42, [], 7)
    assert seen["timeout"] == 10
    assert 'set substitute-path "/py torch" "/a \\"b\\\\c"' in seen["argv"]


def test_frames_are_kept_where_a_later_step_failed(monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any]) -> None:
    answer = {**ANSWER, "warnings": ["one"], "error": "two"}
    monkeypatch.setattr(process, "run", gdb_that(answer, seen))
    assert backtrace.capture(GDB, 42).warnings == ("one", "two")


def test_an_error_without_frames(monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any]) -> None:
    monkeypatch.setattr(process, "run", gdb_that({**ANSWER, "threads": [], "error": "thread 9 is not there"}, seen))
    with pytest.raises(DebuggerError, match="thread 9 is not there"):
        backtrace.capture(GDB, 42)


@pytest.mark.parametrize(
    ("status", "stderr", "kind", "said"),
    [
        ({"State": "T (stopped)"}, "ptrace: Operation not permitted.", PtraceForbidden, "ptrace|yama"),
        ({"State": "T", "TracerPid": "7"}, "ptrace: Operation not permitted.", PtraceForbidden, "by process 7"),
        ({"State": "Z (zombie)"}, "ptrace: Operation not permitted.", DebuggerError, "has ended"),
        ({}, "ptrace: No such process.", DebuggerError, "has ended"),
        ({"State": "T"}, "warning: x\nlibpython3.11.so: cannot open", DebuggerError, "libpython3.11.so"),
        ({"State": "T"}, "", DebuggerError, "exit code 3"),
    ],
)
def test_no_answer(
    monkeypatch: pytest.MonkeyPatch,
    seen: dict[str, Any],
    status: dict[str, str],
    stderr: str,
    kind: type[Exception],
    said: str,
) -> None:
    monkeypatch.setattr(process, "run", gdb_that(None, seen, stderr=stderr, returncode=3))
    monkeypatch.setattr(procfs, "status", lambda pid: status)
    monkeypatch.setattr(os, "kill", lambda *arguments: None)
    with pytest.raises(kind, match=said):
        backtrace.capture(GDB, 42)


@pytest.mark.parametrize(
    "data", [{}, {"threads": []}, {"threads": [{"native_id": 1}], "gdb_version": "", "warnings": []}]
)
def test_foreign_json(data: dict[str, Any]) -> None:
    with pytest.raises(DebuggerError, match="no backtrace"):
        backtrace.from_json(data)


@pytest.mark.parametrize(
    ("current", "original", "places"),
    [
        (b"\x90\xcc\x90\xcc", b"\x90\xc3\x90\x55", [1, 3]),
        (b"\x90\xcc\x90", b"\x90\xcc\x90", []),  # padding between functions
        (b"\x90\x91\x90", b"\x90\xcc\x90", []),  # changed by somebody else
        (b"\xcc\xcc", b"\xcc", []),  # behind the end of the file
    ],
)
def test_breakpoints_are_told_from_the_file(current: bytes, original: bytes, places: list[int]) -> None:
    assert leftovers.breakpoints_in(current, original, b"\xcc") == places
