"""Nothing stays behind: no changed byte, no process, no stopped thread."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from torchbench_dbg.trace.assemble import Assembly
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.outcome import Outcome
from torchbench_dbg.trace.probes import read_mappings

from .conftest import Tdbg, Trace

ENDLESS = "while True: c = a @ b"


def changed_text(pid: int, libraries: WatchedLibraries) -> list[str]:
    """Executable mappings of a live process whose bytes differ from their file's, or that can't execute any more."""
    changed = []
    executable = {
        (mapping.path, mapping.offset): mapping for mapping in read_mappings(pid) if "x" in mapping.permissions
    }
    for library in libraries.loaded:
        for segment in library.index.segments:
            if (str(library.path), segment.offset & ~0xFFF) not in executable:
                changed.append(f"{library.path} can't execute at {segment.offset:#x}")
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for mapping in executable.values():
            if os.path.exists(mapping.path):
                memory.seek(mapping.start)
                with open(mapping.path, "rb") as file:
                    file.seek(mapping.offset)
                    content = file.read(mapping.end - mapping.start)
                    if memory.read(len(content)) != content:
                        changed.append(mapping.path)
    assert len(executable) > 20
    return changed


@pytest.mark.parametrize(
    "options",
    [
        {"expression": "(x * w).sum().backward()"},
        {"expression": "a + b", "breaks": ("add_kernel", "THPVariable_add")},
        {"expression": "nn.Linear(4, 4)(a)", "max_stops": 100},
        {"expression": "a @ undefined"},
    ],
    ids=["backward", "stops", "cut", "raised"],
)
def test_no_byte_of_any_library_stays_changed(
    options: dict[str, object], trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    ending = Assembly._ending

    def check(self: Assembly, outcome: Outcome) -> object:
        checked.append(changed_text(self.inferior.pid, self.libraries))
        return ending(self, outcome)

    monkeypatch.setattr(Assembly, "_ending", check)
    trace(**options)
    assert checked == [[]]


def wait_until_traced(tdbg: Tdbg, process: subprocess.Popen[bytes]) -> None:
    """Until the inferior is under the tracer's control and runs the expression."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in tdbg.survivors():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if f"TracerPid:\t{process.pid}" in status:
                return
        time.sleep(0.05)
    raise AssertionError("the inferior was never traced")


def assert_nobody_left(tdbg: Tdbg) -> None:
    deadline = time.monotonic() + 5
    while (left := tdbg.survivors()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "terminate", "kill-9"]
)
@pytest.mark.parametrize("moment", ["import", "traced"])
def test_no_process_is_left_when_tdbg_is_ended(tdbg: Tdbg, number: signal.Signals, moment: str) -> None:
    process = tdbg.start("trace", ENDLESS, "--cold")
    if moment == "traced":
        wait_until_traced(tdbg, process)
        time.sleep(0.2)
    else:
        time.sleep(0.5)
    process.send_signal(number)
    code = process.wait(timeout=20)
    assert code == {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM, signal.SIGKILL: -signal.SIGKILL}[number]
    assert_nobody_left(tdbg)


def test_no_process_is_left_after_a_timeout(tdbg: Tdbg) -> None:
    done = tdbg("trace", ENDLESS, "--cold", "--timeout", "2")
    assert done.returncode == 7
    assert "still running after 2 s" in done.stdout
    assert_nobody_left(tdbg)


def test_children_of_the_expression_are_ended_with_it(tdbg: Tdbg) -> None:
    done = tdbg(
        "trace", "import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True); c = a + b"
    )
    assert done.returncode == 0, done.stderr
    assert "add_kernel" in done.stdout
    assert_nobody_left(tdbg)


def test_a_forked_child_runs_clean_code(tdbg: Tdbg) -> None:
    """The child has its own copy of the planted pages: an operator in it must not hit a breakpoint."""
    expression = (
        "c = a + b\n"
        "import os\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(7 if torch.equal(a + b, c) and torch.equal(a * b, a.mul(b)) else 1)\n"
        "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    )
    done = tdbg("trace", expression)
    assert done.returncode == 0, done.stderr
    assert "result   7" in done.stdout
    assert_nobody_left(tdbg)


def test_two_traces_at_once_with_an_empty_cache(tdbg: Tdbg, tmp_path: Path) -> None:
    tdbg.environment["TDBG_CACHE_DIR"] = str(tmp_path / "cache")
    both = [tdbg.start("trace", "a + b") for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert_nobody_left(tdbg)
