"""The shell as a person and as a script meets it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from ..trace.conftest import Tdbg

DONE = r"C\+\+ calls of \d+ functions"


class Person:
    """At the prompt of one shell."""

    def __init__(self, tdbg: Tdbg) -> None:
        self.tdbg = tdbg
        command = tdbg.command("--color", "never", "shell")
        environment = {**tdbg.environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environment.pop("COLUMNS")  # the terminal's own width
        self.child = pexpect.spawn(
            command[0], command[1:], env=environment, cwd=str(tdbg.folder), dimensions=(50, 100), timeout=60
        )
        self.child.expect(r"Ctrl-D leaves")
        self.prompt()

    def prompt(self) -> None:
        self.child.expect(r"\d+>")

    def type(self, text: str, *answers: str) -> None:
        """Type a line; the answers come, in this order."""
        self.child.send(text + "\r")
        for answer in answers:
            self.child.expect(answer)


@pytest.fixture
def person(tdbg: Tdbg) -> Iterator[Person]:
    person = Person(tdbg)
    yield person
    person.child.close(force=True)


def test_a_session(person: Person) -> None:
    person.type("a + b", "at::native::add_kernel", DONE)
    person.type(":tree", "THPVariable_add", DONE)
    person.type("1 / 0", "ZeroDivisionError", DONE)
    person.type("a +* b", "error: .*not valid Python")
    person.type("import ctypes; ctypes.string_at(0)", "SIGSEGV", DONE)
    person.type(":tre", "THPVariable_add|SIGSEGV", DONE)
    person.type(":show 1", "at::native::add_kernel", DONE)
    person.type(":shwo", "did you mean :show")
    person.type(":set dtype float46", "no dtype", "did you mean float")
    person.type(":set dtype float64", "dtype +float64")
    person.type(":setup m = nn.Linear(4, 4).double()", "runs first")
    person.type("m(a)", "addmm", DONE)
    person.type("while True: pass")
    time.sleep(1.5)
    person.child.sendintr()
    person.child.expect("interrupted")
    person.child.setwinsize(40, 80)
    person.type("for i in range(2):\rb = a + b\r", "all kernels", DONE)
    person.prompt()
    person.child.send("torch.nn.functional.hardsw\t")
    person.child.expect("ish")
    person.child.send("(a)\r")
    person.child.expect("hardswish_kernel")
    person.child.expect(DONE)
    person.type(":save saved.json", "written to saved.json")
    assert (
        json.loads((person.tdbg.folder / "saved.json").read_text())["expression"] == "torch.nn.functional.hardswish(a)"
    )
    person.prompt()
    person.child.sendeof()
    person.child.expect(pexpect.EOF)
    person.child.wait()
    assert person.child.exitstatus == 0
    assert person.tdbg.survivors() == []
    history = (person.tdbg.folder / "state" / "shell-history").read_text()
    assert "+a + b" in history
    assert "+:set dtype float64" in history


def test_a_break_stops_and_a_server_that_died_is_replaced(person: Person) -> None:
    person.type(":break add_kernle", "did you mean .*add_kernel")
    person.type(":break add_kernel", "stops at +add_kernel")
    person.type("a + b", "add_kernel", DONE)
    server = next(pid for pid in person.tdbg.survivors() if "serve" in arguments(pid))
    os.kill(server, signal.SIGKILL)
    person.type("a + b", "died or does not answer", "starts a new one")
    person.type("a + b", "add_kernel", DONE)
    person.type(":quit")
    person.child.expect(pexpect.EOF)
    assert person.tdbg.survivors() == []


def arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def test_kill_9_leaves_nothing(person: Person) -> None:
    person.type("while True: pass")
    time.sleep(1.0)
    assert len(person.tdbg.survivors()) >= 2
    person.child.kill(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while person.tdbg.survivors() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert person.tdbg.survivors() == []


def test_a_stream_of_expressions(tdbg: Tdbg) -> None:
    done = tdbg("shell", input="a + b\n# nothing\nfor i in range(2):\n    b = b * a\n\n:stack\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("at::native::add_kernel") < done.stdout.index("mul_kernel")
    assert done.stderr == ""


def test_a_stream_to_json(tdbg: Tdbg) -> None:
    done = tdbg("shell", "--json", "--dtype", "float64", input="a + b\nfoo\na @ b")
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert [each["expression"] for each in (first, second, third)] == ["a + b", "foo", "a @ b"]
    assert (first["status"], second["status"]) == ("finished", "raised")
    assert done.returncode == 5  # of the one that failed
    assert "float64" in third["names"][0]["description"]


def test_a_target_without_torch(tdbg: Tdbg) -> None:
    done = tdbg("shell", "--python", "/usr/bin/env", input="a")
    assert done.returncode == 4
    done = tdbg("shell", "--setup", "1 / 0", input="a")
    assert done.returncode == 5
    assert "the setup raised ZeroDivisionError" in done.stderr
