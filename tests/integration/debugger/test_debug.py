"""A person at `tdbg debug`: both debuggers, Ctrl-C, the window, the ends of a script, and the terminal afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.integration import interpreters
from tests.integration.debugger.conftest import require_gdb

PDB, GDB = r"\(Pdb\) ", r"\(gdb\) "
SPIN = """\
import shutil, sys, time

def spin():
    while True:
        time.sleep(0.01)

print("arguments", sys.argv[1:])
spin()
"""
# Runs tdbg on this terminal, and tells how it left it.
WITNESS = """\
import subprocess, sys, termios
before = termios.tcgetattr(0)
code = subprocess.call(sys.argv[1:])
print("terminal", "as before" if termios.tcgetattr(0) == before else "changed", "exit code", code)
"""


class Person:
    """Types at `tdbg debug`, at a terminal of 24 to 100."""

    def __init__(self, folder: Path, *arguments: str, python: str = sys.executable, gdb: str | None = None) -> None:
        words = ["-m", "torchbench_dbg", "debug", "--python", python]
        words += ["--gdb", gdb] if gdb is not None else []
        # COLUMNS and LINES, which pytest-xdist's workers have, would hide the terminal's own size.
        self.environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.environment |= {"TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[3])}
        self.child = pexpect.spawn(
            sys.executable,
            ["-c", WITNESS, sys.executable, *words, *arguments],
            cwd=str(folder),
            env=self.environment,
            dimensions=(24, 100),
            encoding="utf-8",
            timeout=60,
        )

    def at(self, prompt: str, line: str) -> str:
        """Wait for a prompt and type a line; what was printed up to the prompt."""
        self.child.expect(prompt)
        self.child.sendline(line)
        return plain(self.child.before)

    def end(self, timeout: int = 60) -> str:
        self.child.expect(pexpect.EOF, timeout=timeout)
        return plain(self.child.before)


def plain(text: str) -> str:
    return re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|[=>])", "", text).replace("\r", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spin.py").write_text(SPIN)
    return tmp_path


@pytest.fixture
def typing(folder: Path) -> Iterator[list[Person]]:
    people: list[Person] = []
    yield people
    for each in people:
        each.child.close(force=True)


def person(typing: list[Person], folder: Path, *arguments: str, **options: str) -> Person:
    typing.append(Person(folder, *arguments, **options))
    return typing[-1]


@pytest.mark.parametrize("which", ["wheel", "system"])
def test_pdb_gdb_pdb_end_on_torch(which: str, folder: Path, typing: list[Person]) -> None:
    (folder / "train.py").write_text(
        "import sys, torch\nx = torch.ones(2)\ny = x * float(sys.argv[1])\nprint('sum', y.sum().item(), sys.argv[2:])\n"
    )
    who = person(
        typing,
        folder,
        "--break",
        "train.py:3",
        "train.py",
        "2",
        "--not-tdbg's",
        python=interpreters.require_torch(),
        gdb=str(require_gdb(which).path),
    )
    assert "Breakpoint 1 at" in who.at(PDB, "continue")
    assert "-> y = x * float(sys.argv[1])" in who.at(PDB, "gdb")
    banner = who.at(GDB, "continue")
    assert "train.py:3" in banner
    assert "at::_ops::mul_Tensor::call" in banner.replace("\n", " ")
    assert "gdb stays attached" in who.at(PDB, "next")
    assert "THPVariable_mul" in who.at(GDB, "bt 2")
    assert "TypeError_to_NotImplemented_<&torch::autograd::THPVariable_mul>" in who.at(GDB, "detach")
    assert "gdb has let go" in who.at(PDB, "p y.tolist()")
    assert "[2.0, 2.0]" in who.at(PDB, "gdb mull_Tensor::call")
    assert "did you mean" in who.at(PDB, "continue")
    end = who.end()
    assert 'sum 4.0 ["--not-tdbg\'s"]' in end
    assert "terminal as before exit code 0" in end


def test_control_c_in_both_and_the_window_in_both(folder: Path, typing: list[Person]) -> None:
    who = person(typing, folder, "spin.py", "two words")
    who.child.expect(PDB)
    who.child.setwinsize(31, 93)
    who.child.sendline("continue")
    who.child.expect(r"arguments \['two words'\]")
    time.sleep(0.3)
    who.child.sendcontrol("c")
    assert "Program interrupted" in who.at(PDB, "p tuple(shutil.get_terminal_size())")
    assert "(93, 31)" in who.at(PDB, "gdb")
    who.child.expect(GDB)
    who.child.setwinsize(41, 83)
    time.sleep(0.3)
    who.child.sendline("show width")
    who.child.expect("in a line is 83")
    who.at(GDB, "break clock_nanosleep")
    who.at(GDB, "continue")
    who.at(PDB, "continue")
    who.at(GDB, "delete")
    who.at(GDB, "continue")
    time.sleep(0.3)
    who.child.sendcontrol("c")
    assert "SIGINT" in who.at(GDB, "quit")
    who.child.expect("gdb has let go")
    who.child.sendcontrol("c")
    assert "Program interrupted" in who.at(PDB, "p tuple(shutil.get_terminal_size())")
    assert "(83, 41)" in who.at(PDB, "quit")
    assert "terminal as before exit code 0" in who.end()


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_ends_of_a_script(version: str, folder: Path, typing: list[Person]) -> None:
    python = interpreters.require(version)
    (folder / "raises.py").write_text("def f(x):\n    return 1 / x\n\nf(0)\n")
    who = person(typing, folder, "raises.py", python=python)
    who.at(PDB, "continue")
    told = who.at(PDB, "p x + 41")
    assert "ZeroDivisionError" in told
    assert "debugged.py" not in told
    assert "41" in who.at(PDB, "quit")
    assert "terminal as before exit code 1" in who.end()

    (folder / "package").mkdir()
    (folder / "package/__init__.py").touch()
    (folder / "package/module.py").write_text("import sys\nbreakpoint()\nprint(__name__, __package__)\nsys.exit(7)\n")
    who = person(typing, folder, "-m", "package.module", "a", python=python)
    who.at(PDB, "continue")
    assert "package/module.py(" in who.at(PDB, "w")
    assert "inferior" not in who.at(PDB, "continue")
    end = who.end()
    assert "__main__ package" in end
    assert "terminal as before exit code 7" in end

    (folder / "wrong.py").write_text("x = (\n")
    end = person(typing, folder, "wrong.py", python=python).end()
    assert "SyntaxError" in end
    assert "terminal as before exit code 1" in end


def test_restart_keeps_both_debuggers_at_hand(folder: Path, typing: list[Person]) -> None:
    (folder / "short.py").write_text("import sys\nprint(sys.argv[1:])\n")
    who = person(typing, folder, "short.py", "first")
    who.at(PDB, "run second third")
    who.at(PDB, "gdb")
    who.at(GDB, "detach")
    who.at(PDB, "continue")
    assert "['second', 'third']" in who.end()


def test_crash_is_told_and_the_terminal_is_as_before(folder: Path, typing: list[Person]) -> None:
    (folder / "crash.py").write_text("import ctypes\nctypes.string_at(0)\n")
    who = person(typing, folder, "crash.py")
    who.at(PDB, "continue")
    end = who.end()
    assert "SIGSEGV" in end
    assert "tdbg crash -- crash.py" in end.replace("\n", " ")
    assert "terminal as before exit code 139" in end


def test_crash_stops_in_an_attached_gdb(folder: Path, typing: list[Person]) -> None:
    (folder / "crash.py").write_text("import ctypes\nctypes.string_at(0)\n")
    who = person(typing, folder, "crash.py")
    who.at(PDB, "gdb")
    who.at(GDB, "continue")
    who.at(PDB, "continue")
    assert "SIGSEGV" in who.at(GDB, "kill")
    assert "terminal as before" in who.end()


def test_killed_tdbg_leaves_terminal_and_no_process(folder: Path, typing: list[Person]) -> None:
    who = person(typing, folder, "spin.py")
    who.at(PDB, "import os; print('pid', os.getpid(), os.getppid())")
    who.child.expect(r"pid (\d+) (\d+)")
    program, tdbg = int(who.child.match[1]), int(who.child.match[2])
    os.kill(tdbg, 15)
    assert "terminal as before" in who.end()
    assert not Path(f"/proc/{program}").exists()


def test_redirected_streams_are_the_scripts(folder: Path, typing: list[Person]) -> None:
    (folder / "filter.py").write_text("import sys\nprint(sys.stdin.read().upper())\n")
    shell = f"printf lines | {sys.executable} -m torchbench_dbg debug --python {sys.executable} filter.py > out.txt"
    who = person(typing, folder)
    who.child.close(force=True)
    who.child = pexpect.spawn("sh", ["-c", shell], cwd=str(folder), encoding="utf-8", timeout=60, env=who.environment)
    who.at(PDB, "next")
    assert "print(sys.stdin.read().upper())" in who.at(PDB, "p 6 * 7")
    assert "42" in who.at(PDB, "continue")
    who.end()
    assert (folder / "out.txt").read_text() == "LINES\n"


def test_without_a_terminal_it_says_so(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchbench_dbg", "debug", "spin.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "no terminal" in done.stderr
    assert "Traceback" not in done.stderr
