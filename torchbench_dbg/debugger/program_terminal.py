"""The program under pdb, on a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any

from torchbench_dbg.debugger.answers import Program
from torchbench_dbg.debugger.terminal import Terminal
from torchbench_dbg.paths import inferior_directory


class ProgramTerminal:
    """The terminal, and the descriptor on which pdb's command `gdb` waits for an answer."""

    def __init__(self, program: Program, *, size: tuple[int, int]) -> None:
        """TargetError if the interpreter can't be started."""
        token = secrets.token_hex(8)
        control, self._control = os.pipe()
        streams = {
            number: fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
            for number, descriptor in enumerate((program.stdin, program.stdout, program.stderr))
            if descriptor is not None
        }
        entry = str(inferior_directory() / "session.py")
        kind = "module" if program.is_module else "script"
        argv = [str(program.python), entry, "debug", token, str(control), kind, program.script, *program.arguments]
        try:
            self.terminal = Terminal(
                argv,
                token=token,
                size=size,
                environment=program.variables,
                directory=program.directory,
                pass_fds=[control],
                streams=streams,
            )
        finally:
            for descriptor in (control, *streams.values()):
                os.close(descriptor)

    def has_ended(self) -> bool:
        """Whether it has ended, and all that it printed was taken."""
        if not (self.terminal.ended or self.terminal.wait(0)):
            return False
        self.terminal.read_rest()
        return not self.terminal.items

    def reply(self, answer: Mapping[str, Any]) -> None:
        """Let the program go on that waits in pdb's command `gdb`."""
        with contextlib.suppress(BrokenPipeError):  # it has ended, which shows
            os.write(self._control, json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Kill it, wait for it."""
        self.terminal.wait(0)
        self.terminal.close()
        if self._control >= 0:
            os.close(self._control)
            self._control = -1
