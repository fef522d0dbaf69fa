"""A process on a pseudo-terminal of its own, whose output comes as text and marks."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.debugger.marks import Mark, MarkReader

_READ_SIZE = 1 << 16


class Terminal:
    """The host's end. `items`: what was printed and is not yet looked at. `ended`: nothing more will come.

    `is_typing`: a prompt waits, and nothing that was typed there is executed yet, as far as items were taken.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        token: str,
        size: tuple[int, int],
        environment: Mapping[str, str],
        directory: Path | None = None,
        pass_fds: Sequence[int] = (),
        streams: Mapping[int, int] | None = None,
    ) -> None:
        """`size`: rows and columns. `streams`: descriptors 0 to 2 that are to be something else than the terminal.

        TargetError if the program can't be started.
        """
        self._child = process.spawn_on_terminal(
            argv, env=environment, cwd=directory, pass_fds=pass_fds, streams=streams, size=size
        )
        self._reader = MarkReader(token)
        self.items: deque[bytes | Mark] = deque()
        self.is_typing = False
        self.ended = False

    @property
    def pid(self) -> int:
        return int(self._child.pid)

    def fileno(self) -> int:
        return int(self._child.fd)

    def send(self, data: bytes) -> None:
        """Type. What a process that has ended would get is lost, as at a real terminal."""
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self.fileno(), data) :]

    def read(self) -> None:
        """Add what is there to `items`; blocks if nothing is, so ask `ready` first."""
        try:
            data = os.read(self.fileno(), _READ_SIZE)
        except OSError:  # EIO: nobody has the other end open
            data = b""
        if not data:
            self.ended = True
        self.items.extend(self._reader.feed(data))

    def take(self) -> bytes | Mark:
        """The first of `items`. From a prompt to the mark `run` the text is the prompt and what is typed there."""
        item = self.items.popleft()
        if isinstance(item, Mark):
            self.is_typing = item.word == "prompt"
        return item

    def read_rest(self) -> None:
        """Add what was printed by a process that has ended."""
        while not self.ended and ready([self], 0)[0]:
            self.read()

    def resize(self, size: tuple[int, int]) -> None:
        """Rows and columns; the kernel tells the processes on it (SIGWINCH)."""
        with contextlib.suppress(OSError):
            self._child.setwinsize(*size)

    def wait(self, timeout: float) -> bool:
        """Whether the process has ended within so many seconds; then `exit_code` and `signal` are known."""
        deadline = time.monotonic() + timeout
        while self._child.isalive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    @property
    def exit_code(self) -> int | None:
        """None if it ended by a signal, or has not."""
        return None if self._child.exitstatus is None else int(self._child.exitstatus)

    @property
    def signal(self) -> int | None:
        return None if self._child.signalstatus is None else int(self._child.signalstatus)

    def close(self) -> None:
        """Kill what is on it, wait for it, free the terminal."""
        if not self._child.closed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait(10)
            with contextlib.suppress(OSError):
                self._child.fileobj.close()
            self._child.closed = True
        self.items.clear()
        self.ended = True


def ready(
    terminals: Iterable[Terminal], seconds: float, others: Sequence[int] = ()
) -> tuple[list[Terminal], list[int]]:
    """Which of the terminals and other descriptors have something to read, within so many seconds."""
    known = {terminal.fileno(): terminal for terminal in terminals if not terminal.ended}
    found, _, _ = select.select([*known, *others], [], [], max(0.0, seconds))
    return [known[number] for number in found if number in known], [number for number in found if number in others]
