"""A gdb on a terminal of its own, that shares a process with pdb."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from torchbench_dbg.debugger.answers import Place
from torchbench_dbg.debugger.gdb import Gdb, environment
from torchbench_dbg.debugger.marks import Mark, plain
from torchbench_dbg.debugger.terminal import Terminal, ready
from torchbench_dbg.errors import DebuggerError
from torchbench_dbg.paths import gdbinit_directory
from torchbench_dbg.trace import ptrace

_SETTINGS = (
    "set auto-load off",
    "set auto-solib-add off",  # reading the symbols of libtorch_cpu takes seconds
    "set debuginfod enabled off",
    "set confirm off",
    "set pagination off",
    "set print thread-events off",
    "set max-value-size 65536",
    "set startup-with-shell off",
    "set breakpoint pending off",
)
_PROGRAMS_OWN = ("LD_PRELOAD", "PYTHONHOME", "PYTHONINSPECT", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONSTARTUP")
"""What gdb's own Python must not see, and the program that gdb starts must."""
_TICK = 0.5  # seconds between looks whether gdb has ended


class GdbTerminal:
    """The terminal, and a way to give gdb commands while the program runs.

    `traced_pid`: the process that gdb had at its last prompt, 0 for none. `exit_code`: of the program, if gdb told.
    """

    def __init__(
        self, gdb: Gdb, arguments: Sequence[str], *, size: tuple[int, int], settings: Sequence[str] = ()
    ) -> None:
        """TargetError if it can't be started. `arguments` and `settings` as on gdb's own command line."""
        token = secrets.token_hex(8)
        control, self._control = os.pipe()
        folder = gdbinit_directory()
        command = [str(gdb.path), "-nx", "-nh", "-q"]
        for setting in (*_SETTINGS, *settings):
            command += ["-iex", setting]
        for script in ("tdbg.py", "tdbg_session.py"):
            if (folder / script).is_file():
                command += ["-x", str(folder / script)]
        variables = {**environment(gdb), "TDBG_SESSION": json.dumps({"token": token, "control": control})}
        self.traced_pid = 0
        self.exit_code: int | None = None
        try:
            self.terminal = Terminal(
                [*command, *arguments], token=token, size=size, environment=variables, pass_fds=[control]
            )
        finally:
            os.close(control)

    def has_ended(self) -> bool:
        """Whether gdb is gone, by `quit` or otherwise."""
        return self.terminal.ended or self.terminal.wait(0)

    def at_prompt(self, mark: Mark) -> None:
        """Read what the mark of a prompt says."""
        pid, _, code = mark.rest.partition(" ")
        self.traced_pid = int(pid)
        self.exit_code = int(code) if code else None

    def wait_for_prompt(self, deadline: float, *, after_run: bool = False) -> str:
        """What is printed up to the next prompt (`after_run`: behind the mark `run`). DebuggerError if none comes."""
        text = bytearray()
        while True:
            while self.terminal.items:
                item = self.terminal.take()
                if isinstance(item, bytes):
                    text += item
                elif item.word == "run":
                    text.clear()
                    after_run = False
                elif item.word == "prompt" and not after_run:
                    self.at_prompt(item)
                    return plain(bytes(text)).strip("\n")
            if self.has_ended():
                raise DebuggerError(f"gdb has ended: {_last_line(text)}")
            if time.monotonic() > deadline:
                raise DebuggerError(f"gdb gave no prompt in time: {_last_line(text)}")
            if ready([self.terminal], min(_TICK, deadline - time.monotonic()))[0]:
                self.terminal.read()

    def quietly(self, command: str, deadline: float) -> str:
        """Type a command that nobody sees; what it printed."""
        self.type(command)
        return self.wait_for_prompt(deadline, after_run=True)

    def place(self, places: Sequence[Place], deadline: float) -> None:
        """Set breakpoints, in place of those set so before. DebuggerError if gdb can't."""
        if told := self.quietly(f"tdbg-place {json.dumps([asdict(place) for place in places])}", deadline):
            raise DebuggerError(f"gdb set no breakpoint: {told.splitlines()[-1]}")

    def execute(self, command: str) -> None:
        """Have a command executed, even while the program runs; what it prints is lost."""
        try:
            os.write(self._control, command.encode() + b"\n")
        except BrokenPipeError:
            return

    def type(self, command: str) -> None:
        """Type a command whose output begins behind the mark `run`; it does not enter the history."""
        self.terminal.send(f"server tdbg-do {command}\n".encode())

    def close(self) -> None:
        """Kill gdb: the kernel lets the process go."""
        self.terminal.close()
        if self._control >= 0:
            os.close(self._control)
            self._control = -1


def attach(gdb: Gdb, pid: int, *, size: tuple[int, int], deadline: float) -> GdbTerminal:
    """A gdb that has the process, at its prompt. PtraceForbidden if it may not, DebuggerError if it can't."""
    attached = GdbTerminal(gdb, ["-p", str(pid)], size=size)
    try:
        told = attached.wait_for_prompt(deadline)
        if not attached.traced_pid:
            forbidden = "ptrace" in told or "not permitted" in told
            raise ptrace.forbidden() if forbidden else DebuggerError(f"gdb can't attach: {told[-300:]}")
    except BaseException:
        attached.close()
        raise
    return attached


def _last_line(text: bytes | bytearray) -> str:
    return (plain(bytes(text)).strip().splitlines() or ["it says nothing"])[-1]


def program_environment(variables: Mapping[str, str]) -> list[str]:
    """Settings that give the program those variables of its own that gdb must not have."""
    return [
        f"set environment {name} = {variables[name]}" if name in variables else f"unset environment {name}"
        for name in _PROGRAMS_OWN
    ]
