"""`tdbg debug`: a script under pdb, and gdb in the same process whenever it is wanted."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg import console, settings, target
from torchbench_dbg.debugger.gdb import find_gdb
from torchbench_dbg.debugger.keyboard import Keyboard
from torchbench_dbg.debugger.session import Answer, DebugSession, Program
from torchbench_dbg.errors import UsageError

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugOptions:
    """`tdbg debug`. `script`: a file, or the name of a module."""

    script: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False
    python: str | None = None
    gdb: str | None = None
    breaks: tuple[str, ...] = ()


def run(options: DebugOptions) -> int:
    """Hand the terminal over; the exit code is the script's."""
    if not options.is_module and not Path(options.script).is_file():
        raise UsageError(f"{options.script} is no file that can be read.", hint="tdbg debug -m NAME debugs a module")
    loaded = settings.load(warn=console.warn)
    with Keyboard() as keyboard:
        session = DebugSession(
            program=_program(options, options.python or loaded["python"]),
            gdb_to_use=lambda: find_gdb(options.gdb or loaded["gdb"]),
            size=keyboard.size,
            warn=lambda text: keyboard.write(f"\rwarning: {text}\r\n".encode()),
        )
        with session:
            answer = session.start()
            keyboard.write(_as_on_terminal(answer))
            for name in options.breaks if answer.at == "pdb" else ():
                told = session.pdb(f"break {name}").text
                if told.startswith("***"):
                    raise UsageError(f"--break {name}: {told[3:].strip()}", hint="it takes FILE:LINE or a function")
                keyboard.write(told.encode() + b"\n")
            if answer.at == "pdb":
                keyboard.interact(session)
        return _exit_code(session, options)


def _program(options: DebugOptions, python: str | None) -> Program:
    """What of this process's own streams is no terminal is the script's too."""
    stdin, stdout, stderr = (None if os.isatty(number) or not _is_open(number) else number for number in range(3))
    return Program(
        python=target.find_target(python).python,
        script=options.script,
        is_module=options.is_module,
        arguments=options.arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _as_on_terminal(answer: Answer) -> bytes:
    return answer.text.encode("utf-8", "replace") + b"\n" if answer.text else b""


def _exit_code(session: DebugSession, options: DebugOptions) -> int:
    if session.signal is None:
        return session.exit_code or 0
    name = signal.Signals(session.signal).name
    words = " ".join(["-m", options.script] if options.is_module else [options.script])
    hint = f"tdbg crash -- {words} finds out why" if session.signal in _CRASHES else None
    console.error(f"the program was ended by {name}.", hint=hint)
    return 128 + session.signal
