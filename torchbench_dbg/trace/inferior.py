"""The host's end of the inferior: start it, talk to it, read what it recorded (protocol: inferior/conversation.py)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from torchbench_dbg import process
from torchbench_dbg.errors import InferiorTimeout, TargetError
from torchbench_dbg.paths import inferior_directory
from torchbench_dbg.trace.record import Code

_PIPE_BYTES = 1 << 20  # an event is not read while the tracer runs: it must fit
RING_BYTES = 32 << 20  # two million Python events; sparse, so only what is used costs memory


class InferiorGone(Exception):
    """The inferior closed its pipe: it died. `code` as Popen.returncode has it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Life(Protocol):
    """The process of an inferior."""

    @property
    def pid(self) -> int: ...

    def end(self) -> None:
        """Kill it and all that it started in its group, and wait for it."""

    def exit_code(self) -> int:
        """Of a process that is about to end, as Popen.returncode has it; 0 where the tracer has waited for it."""


class Spawned:
    """An interpreter of its own, started on inferior/session.py."""

    def __init__(self, python: Path, arguments: Sequence[str], handed: Sequence[int]) -> None:
        talk = sys.stderr.fileno()  # what the expression prints: stdout is for the result
        self._process = process.spawn(
            [str(python), str(inferior_directory() / "session.py"), *arguments, str(os.getpid())],
            pass_fds=handed,
            stdin=process.NOTHING,
            stdout=talk,
            stderr=talk,
        )
        self.pid = self._process.pid

    def end(self) -> None:
        process.kill_group(self._process)

    def exit_code(self) -> int:
        return process.wait(self._process, timeout=5) or 0


Start = Callable[[Sequence[int]], Life]
"""Begins the process that converses on (control, events, ring, names), descriptors that it gets copies of."""


def spawned(python: Path) -> Start:
    """The conversation in an interpreter of its own."""
    return lambda handed: Spawned(python, [str(descriptor) for descriptor in handed], handed)


class Inferior:
    """A running inferior. Use as a context manager: nothing of it survives the block."""

    def __init__(self, start: Start, config: dict[str, Any]) -> None:
        self._ring_fd = os.memfd_create("tdbg-ring", os.MFD_CLOEXEC)
        self._names_fd = os.memfd_create("tdbg-names", os.MFD_CLOEXEC)
        os.ftruncate(self._ring_fd, RING_BYTES)
        self.ring = mmap.mmap(self._ring_fd, RING_BYTES, prot=mmap.PROT_READ)
        self._count = memoryview(self.ring).cast("Q")
        control_read, self._control = os.pipe2(os.O_CLOEXEC)
        self._events, events_write = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._events, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._buffer = b""
        try:
            self._life = start((control_read, events_write, self._ring_fd, self._names_fd))
        except BaseException:
            self._close()
            raise
        finally:
            os.close(control_read)
            os.close(events_write)
        self.pid = self._life.pid
        self.send(config)

    def __enter__(self) -> Inferior:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._life.end()
        self._close()

    def _close(self) -> None:
        self._count.release()
        self.ring.close()
        for descriptor in (self._ring_fd, self._names_fd, self._control, self._events):
            os.close(descriptor)

    @property
    def count_python_events(self) -> Callable[[], int]:
        """A cheap read of how many Python events have been written."""
        count = self._count
        return lambda: count[0]

    @property
    def python_breaks(self) -> Callable[[], tuple[int, int]]:
        """(how many calls of Python breakpoints there were, position of the last one's name)."""
        words = self._count
        return lambda: (words[3], words[2])

    @property
    def dropped_events(self) -> int:
        """Python events that no longer fitted."""
        return int(self._count[1])

    def send(self, message: dict[str, Any]) -> None:
        """One control line. A dead inferior is noticed at the next `receive`."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, json.dumps(message).encode() + b"\n")

    def receive(self, *, timeout: float) -> dict[str, Any]:
        """The next event. InferiorGone if it died, InferiorTimeout after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._events], [], [], remaining)[0]:
                raise InferiorTimeout(f"the target interpreter did not answer within {timeout:g} s.")
            data = os.read(self._events, 1 << 16)
            if not data:
                raise InferiorGone(self._life.exit_code())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            event = json.loads(line)
        except ValueError as error:
            raise TargetError(f"the target interpreter sent what is not a message: {line[:80]!r}") from error
        return dict(event)

    def ask(self, message: dict[str, Any], answer: str, *, timeout: float = 20) -> dict[str, Any]:
        """Send a command and wait for the event that answers it."""
        self.send(message)
        while True:
            event = self.receive(timeout=timeout)
            if event["event"] == answer:
                return event

    def codes(self) -> list[Code]:
        """The Python functions that the recorder saw, by their number (number 0 is reserved)."""
        size = os.fstat(self._names_fd).st_size
        text = os.pread(self._names_fd, size, 0).decode(errors="replace")
        codes = [Code(name="?", file=None, line=None, c=False)]
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                while len(codes) <= entry["id"]:
                    codes.append(codes[0])
                codes[entry["id"]] = Code(
                    name=str(entry["name"]), file=entry["file"], line=entry["line"], c=bool(entry["c"])
                )
        return codes
