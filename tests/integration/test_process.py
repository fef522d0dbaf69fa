"""Children, and that nothing of them stays. (Here and not in tests/unit: these start processes.)"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from torchbench_dbg import process
from torchbench_dbg.errors import TargetError

pytestmark = pytest.mark.integration


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and is not reaped by its new parent yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int) -> bool:
    end = time.monotonic() + 5
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


def test_how_a_child_ended_and_what_it_said() -> None:
    done = process.run(["sh", "-c", "cat; echo no >&2; exit 3"], input="é")
    assert done == process.Completed(returncode=3, stdout="é", stderr="no\n")


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert process.run(["printf", r"\377"]).stdout == "\ufffd"


def test_environment_and_directory(tmp_path: Path) -> None:
    done = process.run(["/bin/sh", "-c", 'echo "$MARK"; pwd -P'], env={"MARK": "one"}, cwd=tmp_path)
    assert done.stdout.splitlines() == ["one", str(tmp_path.resolve())]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/nowhere/python"], "can't be started: No such file"),
        (["/"], "can't be started: Permission denied"),
        (["nul\0"], "can't be started: embedded null byte"),
    ],
)
def test_what_can_not_be_started(argv: list[str], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        process.run(argv)


def test_a_child_of_the_child_ends_with_it_at_the_time_limit(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    before = time.monotonic()
    with pytest.raises(process.ProcessTimeout, match="did not end within"):
        process.run(["sh", "-c", f"sleep 60 & echo $! > {note}; wait"], timeout=0.5)
    assert time.monotonic() - before < 10
    assert gone(int(note.read_text()))


def test_what_a_child_leaves_behind_is_killed(tmp_path: Path) -> None:
    done = process.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"])
    assert done.returncode == 0
    assert gone(int(done.stdout))


def test_a_spawned_child_leads_its_own_session_and_is_reaped() -> None:
    child = process.spawn(["sleep", "60"])
    assert os.getsid(child.pid) == child.pid != os.getsid(0)
    assert process.wait(child, timeout=0.01) is None
    process.kill_group(child)
    assert child.returncode == -9
    process.kill_group(child)  # once more does no harm


def test_only_the_descriptors_given_are_passed() -> None:
    reading, writing = os.pipe()
    try:
        done = process.run(["sh", "-c", f"echo through >/dev/fd/{writing}"], pass_fds=[writing])
        assert done.returncode == 0
        assert os.read(reading, 99) == b"through\n"
        assert process.run(["sh", "-c", f"echo through >/dev/fd/{writing}"]).returncode != 0
    finally:
        os.close(reading)
        os.close(writing)
