"""Runs a step's commands: in the build's environment, everything they print in the log, progress to whoever watches."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from torchbench_dbg import process
from torchbench_dbg.build.ninja import Progress, ProgressReader
from torchbench_dbg.errors import BuildError, TargetError

_TAIL_LINES = 40


class Command(NamedTuple):
    """A command of a step, the directory in which it runs (None: any), and variables that only it gets."""

    argv: list[str]
    cwd: Path | None = None
    variables: dict[str, str] = {}


class Watcher(Protocol):
    """Who is told how a build goes on. Nothing here may print: the terminal is the watcher's."""

    def step_begins(self, title: str) -> None: ...

    def step_ends(self, *, skipped: bool) -> None: ...

    def command_begins(self, argv: Sequence[str]) -> None: ...

    def line(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def quiet(self) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Shell:
    """`variables` are the child's whole environment. `log` gets every byte, ninja's progress records excepted."""

    variables: Mapping[str, str]
    log: BinaryIO
    watcher: Watcher
    is_sign: Callable[[str], bool] = lambda _line: False  # which lines a failure must carry, however early they came
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    signs: list[str] = field(default_factory=list)
    listeners: list[Callable[[str], None]] = field(default_factory=list)

    def run(self, command: Command) -> None:
        """Run one command. CommandFailed, with the end of what it printed, if it fails."""
        argv = command.argv
        self.watcher.command_begins(argv)
        self.log.write(f"\n$ {shlex.join(argv)}\n".encode("utf-8", "surrogateescape"))
        self.tail.clear()
        self.signs.clear()
        reader = ProgressReader()
        pending = b""

        def on_output(data: bytes) -> None:
            nonlocal pending
            text, records = reader.feed(data)
            self.log.write(text)
            *lines, pending = (pending + text).split(b"\n")
            for line in lines:
                self._line(line)
            if records:
                self.watcher.progress(records[-1])

        environment = {**self.variables, **command.variables}
        try:
            code = process.stream(argv, on_output, env=environment, cwd=command.cwd, on_quiet=self.watcher.quiet)
        except TargetError as error:
            raise BuildError(error.message, hint=error.hint) from error
        self.log.write(reader.rest())
        self._line(pending)
        self.log.flush()
        if code:
            raise CommandFailed(tuple(argv), code, tuple(self.tail), tuple(self.signs))

    def run_all(self, commands: Sequence[Command]) -> None:
        """Run commands one after the other."""
        for command in commands:
            self.run(command)

    def take_line(self, line: str) -> None:
        """A line of a tool that is no command of the shell's own: into the log, and to whoever watches."""
        self.log.write(line.encode("utf-8", "replace") + b"\n")
        self._line(line.encode("utf-8", "replace"))

    def _line(self, line: bytes) -> None:
        # A carriage return draws a line over itself: what is left is what counts.
        text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2].rstrip()
        if text:
            self.tail.append(text)
            if len(self.signs) < _TAIL_LINES and self.is_sign(text):
                self.signs.append(text)
            self.watcher.line(text)
            for listener in self.listeners:
                listener(text)


class CommandFailed(BuildError):
    """A command of a step ended with an error."""

    def __init__(self, argv: tuple[str, ...], code: int, tail: tuple[str, ...], signs: tuple[str, ...] = ()) -> None:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        super().__init__(f"{shlex.join(argv)[:200]} {how}.")
        self.argv = argv
        self.code = code
        self.tail = tail
        self.signs = signs
