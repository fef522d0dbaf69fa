"""The open calls of one thread: what makes every recorded call have exactly one return."""

from __future__ import annotations

import threading
import time

from .ring import C_CALL, C_RETURN, CALL, LINE, RETURN, Writer

CLOSE_PATIENCE = 1.0
"""Seconds to wait at most for a thread that is just writing an event."""


class ThreadStack:
    """Writes the events of one thread. Names are given as `name id << 32`; open C calls are kept with bit 0
    set.

    `close` is called from another thread: each event holds `_busy` while the list of open calls and the
    ring may disagree.
    """

    __slots__ = ("_busy", "_closed", "_open", "_thread", "_write")

    def __init__(self, write: Writer) -> None:
        self._write = write
        self._thread = threading.get_native_id() << 32
        self._open: list[int] = []
        self._busy = False
        self._closed = False

    def call(self, name: int, line: int) -> None:
        """A Python function is entered, or a generator resumed."""
        self._busy = True
        if not self._closed:
            self._open.append(name)
            self._write(name | CALL, self._thread | line)
        self._busy = False

    def leave(self, name: int) -> None:
        """A Python function returns, yields or is unwound."""
        self._busy = True
        opened = self._open
        if not self._closed and opened and (opened[-1] == name or name in opened):
            # Mostly it is the last one. Else the returns of some calls inside it were never reported
            # (an exception that crossed C code); they are over now.
            while opened[-1] != name:
                self._close_last()
            self._close_last()
        self._busy = False

    def c_call(self, name: int, line: int) -> None:
        """A Python frame calls a C function; `line` is that frame's."""
        self._busy = True
        if not self._closed:
            if self._open and self._open[-1] & 1:
                # Its caller is running again, so the C function before it is over, though its return
                # was not reported.
                self._close_last()
            self._open.append(name | 1)
            self._write(name | C_CALL, self._thread | line)
        self._busy = False

    def c_leave(self) -> None:
        """Some C function returned or raised: the innermost open call, if that is a C function, else one that
        was not recorded.
        """
        self._busy = True
        if not self._closed and self._open and self._open[-1] & 1:
            self._close_last()
        self._busy = False

    def line(self, name: int, line: int) -> None:
        """A line of the expression or the script begins."""
        if not self._closed:
            self._write(name | LINE, self._thread | line)

    def close(self) -> None:
        """Return from everything that is open, and write no more: a thread may still run code that was
        instrumented before.
        """
        self._closed = True
        deadline = time.monotonic() + CLOSE_PATIENCE
        while self._busy and time.monotonic() < deadline:
            time.sleep(0)
        while self._open:
            self._close_last()

    def _close_last(self) -> None:
        name = self._open.pop()
        self._write((name ^ 1) | C_RETURN if name & 1 else name | RETURN, self._thread)


class Stacks:
    """The stacks of all threads. Kept per thread and not by thread ident: an ident is used again after its
    thread ended.
    """

    def __init__(self, write: Writer) -> None:
        self._write = write
        self._local = threading.local()
        self._all: list[ThreadStack] = []
        self._closed = False

    def this_thread(self) -> ThreadStack:
        """The open calls of the calling thread."""
        try:
            stack: ThreadStack = self._local.stack
        except AttributeError:
            stack = self._local.stack = ThreadStack(self._write)
            self._all.append(stack)
            if self._closed:
                stack.close()
        return stack

    def close(self) -> None:
        """Return from every open call of every thread, and write no more."""
        self._closed = True
        for stack in list(self._all):
            stack.close()
