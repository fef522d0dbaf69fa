"""pdb and gdb on one process.

The program runs under pdb on a pseudo-terminal; on demand a gdb on a second one attaches to the same process, and stays
attached until it is told to detach or quit. The host sits between: a script drives both through `DebugSession`, a
person through `keyboard.interact`, which uses the same object. Who has the floor is never guessed: both debuggers
put marks into what they print (marks.py).

gdb is always asked for in pdb, by its command `gdb`: so the program stands in pdb when gdb attaches, and comes back to
a pdb prompt when it is let go.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchbench_dbg.debugger import leftovers
from torchbench_dbg.debugger.answers import Answer, Floor, Program, Stop
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.debugger.gdb_terminal import GdbTerminal, attach, program_environment
from torchbench_dbg.debugger.marks import Mark, plain
from torchbench_dbg.debugger.places import Places, unique, wanted_stop
from torchbench_dbg.debugger.program_terminal import ProgramTerminal
from torchbench_dbg.debugger.terminal import Terminal, ready
from torchbench_dbg.errors import DebuggerError, InferiorTimeout, TdbgError, UnknownSymbol, UsageError
from torchbench_dbg.trace import procfs

__all__ = ["Answer", "DebugSession", "Floor", "Program", "Stop"]

TIMEOUT = 60.0  # seconds, for one command
_TICK = 0.5  # seconds between looks whether a process without output has ended
_LAST_OF_TORCH = "libtorch_python"  # it is loaded together with, and after, those that it needs


@dataclass(slots=True)
class DebugSession:
    """One program under both debuggers. A context manager: at its end everything is killed and waited for.

    `gdb_to_use`: a gdb, or what finds one when it is needed. `size`: rows and columns of both terminals.
    `at`: who has the floor, None before the start. `last_stop`: what gdb was last told to stop at.

    Errors of all methods: DebuggerError (gdb is missing or failed), PtraceForbidden, UnknownSymbol (with suggestions),
    InferiorTimeout (no prompt in time; the session can be used further), UsageError (the other one has the floor).
    """

    program: Program
    gdb_to_use: Gdb | Callable[[], Gdb] | None = None
    size: tuple[int, int] = (24, 80)
    warn: Callable[[str], None] = lambda _text: None
    at: Floor | None = None
    last_stop: Stop | None = None
    _program: ProgramTerminal | None = None
    _gdb: GdbTerminal | None = None
    _breaks: Sequence[str] | None = None
    _failure: TdbgError | None = None

    def __enter__(self) -> DebugSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *, timeout: float = TIMEOUT) -> Answer:
        """Start the program; pdb has the floor before its first line."""
        self.begin()
        return self._answer(timeout)

    def pdb(self, command: str, *, timeout: float = TIMEOUT) -> Answer:
        """Type a command at pdb's prompt; the answer comes with the next prompt of either debugger."""
        self._check_floor("pdb", command)
        assert self._program is not None
        self._program.terminal.send(command.encode() + b"\n")
        return self._answer(timeout)

    def attach_gdb(self, breaks: Sequence[str] | None = None, *, timeout: float = TIMEOUT) -> Answer:
        """Go to gdb, in the process as it stands in pdb.

        `breaks`: names of functions, as `tdbg trace --break` takes them; None: those that the current line will run.
        """
        self._breaks, self._failure = breaks, None
        try:
            answer = self.pdb("gdb", timeout=timeout)
        finally:
            self._breaks = None
        if self._failure is not None:
            raise self._failure
        return answer

    def gdb(self, command: str, *, timeout: float = TIMEOUT) -> Answer:
        """Type a command at gdb's prompt; the answer comes with the next prompt of either debugger."""
        self._check_floor("gdb", command)
        assert self._gdb is not None
        self._gdb.type(command)
        return self._answer(timeout)

    def interrupt(self, *, timeout: float = TIMEOUT) -> Answer:
        """Ctrl-C for who has the floor, after a command that gave InferiorTimeout."""
        self.floor_terminal().send(b"\x03")
        return self._answer(timeout)

    def start_in_gdb(self, breaks: Sequence[str] = (), *, timeout: float = TIMEOUT) -> Answer:
        """`gdb --args python SCRIPT`, without pdb: run to the first of the functions, or to the end."""
        program = self.program
        words = [str(program.python), *(["-m"] if program.is_module else []), program.script, *program.arguments]
        settings = program_environment(program.variables)
        if program.directory is not None:
            settings.append(f"set cwd {program.directory}")
        began, deadline = time.monotonic(), time.monotonic() + timeout
        gdb = self._gdb = GdbTerminal(self._usable_gdb(), ["--args", *words], size=self.size, settings=settings)
        self.at = "gdb"
        gdb.wait_for_prompt(deadline)
        if not breaks:
            return self.gdb("run", timeout=timeout)
        gdb.quietly(f"tcatch load {_LAST_OF_TORCH}", deadline)
        text = gdb.quietly("run", deadline)
        if not gdb.traced_pid:
            return self._ended_in_gdb(text, began)
        # Only now, when torch's libraries are there, the addresses in them are known.
        places = Places(gdb.traced_pid, self.warn)
        gdb.place(unique(place for name in breaks for place in places.find(name)), deadline)
        return self.gdb("continue", timeout=deadline - time.monotonic())

    def close(self) -> None:
        """Kill both, wait for them. Nothing happens if they have ended."""
        if self._gdb is not None:
            self._gdb.close()
            self._gdb = None
        if self._program is not None:
            self._program.close()
        self.at = "ended"

    def begin(self) -> None:
        """Start the program, and do not wait for it."""
        self._program = ProgramTerminal(self.program, size=self.size)
        self.at = "pdb"

    @property
    def pid(self) -> int:
        """Of the program, 0 if there is none."""
        if self._program is not None:
            return self._program.terminal.pid
        return self._gdb.traced_pid if self._gdb is not None else 0

    @property
    def exit_code(self) -> int | None:
        """Of the program that has ended; None if it has not, or by a signal."""
        if self._program is not None:
            return self._program.terminal.exit_code
        return self._gdb.exit_code if self._gdb is not None else None

    @property
    def signal(self) -> int | None:
        """That ended the program."""
        return self._program.terminal.signal if self._program is not None else None

    @property
    def is_attached(self) -> bool:
        """Whether gdb has the process, whoever has the floor."""
        return self._gdb is not None

    def floor_terminal(self) -> Terminal:
        """Where what a person types goes."""
        holder = self._gdb if self.at == "gdb" else self._program
        assert holder is not None
        return holder.terminal

    def resize(self, size: tuple[int, int]) -> None:
        """The window has another size: (rows, columns)."""
        self.size = size
        for terminal in self._terminals():
            terminal.resize(size)

    def wait(self, seconds: float, others: Sequence[int] = ()) -> list[int]:
        """Wait so long for output, which `printed` gives then; which of the other descriptors can be read."""
        terminals = self._terminals()
        found, more = ready(terminals, 0 if any(each.items for each in terminals) else seconds, others)
        for terminal in found:
            terminal.read()
        return more

    def printed(self) -> Iterator[bytes]:
        """What was printed, up to the next prompt; `at` says whose it is when the iterator ends."""
        for terminal in self._terminals():
            while terminal.items:
                item = terminal.take()
                if isinstance(item, bytes):
                    yield item
                elif item.word != "run" and self._on_mark(terminal, item, time.monotonic() + TIMEOUT):
                    return
        self._look_for_ends()

    def _terminals(self) -> list[Terminal]:
        return [each.terminal for each in (self._gdb, self._program) if each is not None]

    def _check_floor(self, wanted: Floor, command: str) -> None:
        if self.at != wanted:
            raise UsageError(f"{command}: this is for {wanted}, but {self.at or 'nobody'} has the floor.")

    def _usable_gdb(self) -> Gdb:
        if callable(self.gdb_to_use):
            self.gdb_to_use = self.gdb_to_use()
        if self.gdb_to_use is None:
            raise DebuggerError("this session has no gdb.")
        return self.gdb_to_use

    def _answer(self, timeout: float) -> Answer:
        """Collect what is printed until somebody waits for a command."""
        began, text = time.monotonic(), bytearray()
        deadline = began + timeout
        while True:
            for terminal in self._terminals():
                while terminal.items:
                    was_typing, item = terminal.is_typing, terminal.take()
                    if isinstance(item, bytes):
                        text += b"" if was_typing else item
                    elif item.word == "run" or (item.word == "prompt" and was_typing):
                        continue  # a prompt that is shown once more, because the window has another size
                    elif self._on_mark(terminal, item, deadline):
                        return self._told(text, began)
            self._look_for_ends()
            if self.at == "ended":
                return self._told(text, began)
            if time.monotonic() > deadline:
                last = plain(bytes(text)).strip()[-200:]
                raise InferiorTimeout(f"{self.at} gave no prompt within {timeout:g} s; it printed {last!r}.")
            self.wait(min(_TICK, deadline - time.monotonic()))

    def _told(self, text: bytearray, began: float) -> Answer:
        return Answer(
            at=self.at or "ended",
            text=plain(bytes(text)).strip("\n"),
            seconds=time.monotonic() - began,
            exit_code=self.exit_code,
            signal=self.signal,
        )

    def _on_mark(self, terminal: Terminal, mark: Mark, deadline: float) -> bool:
        """Follow a mark; whether somebody waits for a command now."""
        if self._program is not None and terminal is self._program.terminal:
            if mark.word == "gdb":
                return self._to_gdb(json.loads(mark.rest), deadline)
            self._give_floor("pdb")
            return True
        assert self._gdb is not None
        if mark.word == "leave":
            with contextlib.suppress(DebuggerError):  # `quit` gives no prompt
                self._gdb.traced_pid = 0
                self._gdb.wait_for_prompt(deadline)
        else:
            self._gdb.at_prompt(mark)
        if not self._gdb.traced_pid and self._program is not None:
            self._end_gdb()
            return False
        self._give_floor("gdb" if self._gdb.traced_pid else "ended")
        return True

    def _give_floor(self, floor: Floor) -> None:
        """Ctrl-C while the program runs is for pdb's handler, or stops in gdb."""
        if floor != self.at and self._gdb is not None:
            self._gdb.execute(f"handle SIGINT {'nostop noprint pass' if floor == 'pdb' else 'stop print nopass'}")
        self.at = floor

    def _look_for_ends(self) -> None:
        """Follow the end of the program, and of a gdb that was not told to."""
        if self._gdb is not None and self._gdb.has_ended():
            self._end_gdb()
        if self._program is not None and self._program.has_ended():
            self._program.terminal.wait(10)
            self.close()

    def _end_gdb(self) -> None:
        """gdb has let the process go, or has died: then it may have left breakpoints."""
        gdb, self._gdb = self._gdb, None
        if gdb is None:
            return
        gdb.terminal.send(b"server quit\n")
        if not gdb.terminal.wait(5) or gdb.terminal.signal is not None:
            stop = self.last_stop
            leftovers.remove_breakpoints(self.pid, [place.address for place in stop.places] if stop else [])
        gdb.close()
        self.at = "pdb" if self._program is not None else "ended"

    def _to_gdb(self, wish: Mapping[str, Any], deadline: float) -> bool:
        """The program waits in pdb's command `gdb`: attach, set the breakpoints. False if it goes back to pdb."""
        assert self._program is not None
        if self._gdb is not None and procfs.status(self.pid).get("TracerPid", "0") == "0":
            self._end_gdb()  # it has just died
        was_attached = self._gdb is not None
        try:
            stop = wanted_stop(wish, self._breaks, self.pid, self.warn)
            if self._gdb is None:
                self._gdb = attach(self._usable_gdb(), self.pid, size=self.size, deadline=deadline)
            else:
                self._program.reply({"stop": True})
                self._gdb.wait_for_prompt(deadline)
            self._gdb.place(stop.places, deadline)
        except TdbgError as error:
            self._failure = error
            if not was_attached or isinstance(error, UnknownSymbol):
                self._program.reply({"error": error.message + (f" ({error.hint})" if error.hint else "")})
            if not isinstance(error, UnknownSymbol):
                self._end_gdb()
            return False
        if not was_attached:
            self._program.reply({})
        self.last_stop = stop
        self._give_floor("gdb")
        return True

    def _ended_in_gdb(self, text: str, began: float) -> Answer:
        self.at = "ended"
        return Answer(at="ended", text=text, seconds=time.monotonic() - began, exit_code=self.exit_code)
