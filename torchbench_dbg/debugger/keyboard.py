"""A person at the keyboard drives a session: keys go to who has the floor, a line tells when that changes."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import textwrap
import tty
from collections.abc import Iterator
from types import FrameType

from torchbench_dbg.debugger.session import DebugSession, Stop
from torchbench_dbg.errors import UsageError

LEAVE = b"\x1d"  # Ctrl-], as in telnet
_TICK = 1.0  # seconds between looks whether a process without output has ended
_READ_SIZE = 4096
_MOST_NAMED = 4  # functions of a piece of a line that the banner names


class Keyboard:
    """The controlling terminal of this process, whatever its stdin and stdout are."""

    def __init__(self) -> None:
        """UsageError if there is none."""
        try:
            self.descriptor = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(
                "there is no terminal here, and two debuggers need somebody who types.",
                hint="tdbg run plays a session by a script; ssh -t, docker run -it give a terminal",
            ) from error

    def __enter__(self) -> Keyboard:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns; 24 and 80 where the terminal does not know."""
        columns, rows = os.get_terminal_size(self.descriptor)
        return rows or 24, columns or 80

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.descriptor, data) :]

    def interact(self, session: DebugSession, *, leave: bool = False) -> None:
        """Hand the keyboard over until the program has ended, or (`leave`) until Ctrl-] is pressed.

        However it ends, the terminal is as before.
        """
        with self._raw(), self._signals(session):
            before = self._state(session)
            while session.at != "ended":
                if session.wait(_TICK, [self.descriptor]):
                    keys = os.read(self.descriptor, _READ_SIZE)
                    if not keys or (leave and LEAVE in keys):
                        return
                    session.floor_terminal().send(keys)
                for text in session.printed():
                    self.write(text)
                now = self._state(session)
                if now != before:
                    self._say(list(banner(session, is_new_stop=now[2] is not before[2])))
                before = now

    @staticmethod
    def _state(session: DebugSession) -> tuple[str | None, bool, Stop | None]:
        return session.at, session.is_attached, session.last_stop

    def _say(self, lines: list[str]) -> None:
        """Lines between the debuggers' own, dim."""
        columns = self.size[1]
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"
        begin, end = ("", "") if plain else ("\x1b[2m", "\x1b[0m")
        wrapped = [part for line in lines for part in textwrap.wrap(line, columns - 1, subsequent_indent="   ")]
        self.write("".join(f"\r{begin}{part}{end}\r\n" for part in wrapped).encode("utf-8", "replace"))

    @contextlib.contextmanager
    def _raw(self) -> Iterator[None]:
        kept = termios.tcgetattr(self.descriptor)
        tty.setraw(self.descriptor)
        try:
            yield
        finally:
            # A debugger that was killed may have left bracketed paste on.
            self.write(b"\x1b[?2004l\r" if os.environ.get("TERM", "dumb") != "dumb" else b"\r")
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, kept)

    @contextlib.contextmanager
    def _signals(self, session: DebugSession) -> Iterator[None]:
        """The window's size is passed on; what would end tdbg puts the terminal in order first."""

        def resized(_number: int, _frame: FrameType | None) -> None:
            session.resize(self.size)

        def ended(number: int, _frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        handlers = {signal.SIGWINCH: resized, signal.SIGTERM: ended, signal.SIGHUP: ended}
        kept = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        session.resize(self.size)
        try:
            yield
        finally:
            for number, previous in kept.items():
                signal.signal(number, previous)


def banner(session: DebugSession, *, is_new_stop: bool) -> Iterator[str]:
    """Where one is, and how to get back."""
    stop = session.last_stop
    if session.at == "ended":
        return
    if session.at == "pdb" and session.is_attached:
        yield "── pdb · gdb stays attached and stops at its breakpoints · gdb: to it now"
    elif session.at == "pdb":
        yield "── pdb · gdb has let go · gdb: attach it again"
    elif stop is None or not is_new_stop:
        yield "── gdb · continue: on, and back to pdb · detach: back for good"
    else:
        yield f"── gdb · process {session.pid} at {stop.place}  {stop.text}"
        if not stop.reasons:
            yield "   no function is known for this line; in pdb `gdb NAME` stops at one"
        for places, why in stop.reasons:
            names = list(dict.fromkeys(place.name for place in places))
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            yield f"   stops at {', '.join(names[:_MOST_NAMED])}{more}" + ("" if stop.asked else f"  for {why}")
        yield "   continue: on, and back to pdb · detach: back for good · bt: backtrace"
