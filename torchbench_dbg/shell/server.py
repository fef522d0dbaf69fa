"""The host's end of inferior/server.py: an interpreter with torch imported, forked for each expression."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbench_dbg.errors import TargetError
from torchbench_dbg.trace import inferior_errors, ptrace
from torchbench_dbg.trace.engine import IMPORT_TIMEOUT, Imported, follow, warm_or_cold
from torchbench_dbg.trace.inferior import Inferior, Spawned
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.request import TraceRequest

_ANSWER_TIMEOUT = 20.0  # seconds; a fork takes some milliseconds
_PACKET_BYTES = 1 << 20


class ServerGone(TargetError):
    """The interpreter that is forked died, or does not answer: a new one has to be started."""


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C arrives afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class Forked:
    """The process of one expression: a child of the server, traced by us."""

    server: TorchServer
    pid: int

    def end(self) -> None:
        with _uninterrupted():
            self._end()

    def _end(self) -> None:
        for kill in (os.kill, os.killpg):  # its group is there once the child has made it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)
        # Its parent can wait for it when its tracer has, for every thread that is still followed.
        for tid in reversed(ptrace.threads(self.pid)):
            with contextlib.suppress(ChildProcessError):
                while os.WIFSTOPPED(os.waitpid(tid, ptrace.WAIT_ALL)[1]):
                    pass
        with contextlib.suppress(ServerGone):  # then nobody is left who had to wait for it
            self.exit_code()
        self._reap_followed()

    def _reap_followed(self) -> None:
        """What the expression started was followed too: a zombie until its tracer, which lives on, has waited."""
        everything = os.WEXITED | os.WNOHANG | os.WNOWAIT | ptrace.WAIT_ALL
        with contextlib.suppress(ChildProcessError):
            while (gone := os.waitid(os.P_ALL, 0, everything)) and gone.si_pid != self.server.pid:
                os.waitpid(gone.si_pid, ptrace.WAIT_ALL)

    def exit_code(self) -> int:
        return int(self.server.ask({"command": "wait", "pid": self.pid})["code"])


class TorchServer:
    """A context manager: nothing of the server and its children survives the block.

    Entering it imports torch and loads the symbol indexes meanwhile, errors as `tdbg trace` has them.
    """

    def __init__(self, python: Path, *, cache: Path | None, warn: Callable[[str], None]) -> None:
        self._python, self._cache, self._warn = python, cache, warn

    def __enter__(self) -> TorchServer:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._life = Spawned(self._python, ["serve", str(theirs.fileno())], [theirs.fileno()])
        try:
            self._introduce()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()
        self._life.end()

    @property
    def pid(self) -> int:
        return self._life.pid

    def _introduce(self) -> None:
        self._send({})
        hello = self._expect("before it said a word")
        paths = [Path(path) for path in hello["torch_libraries"]]
        self._libraries = WatchedLibraries.load(paths, self._cache, self._warn)
        imported = self._expect("while it imported torch")
        self._hello, self.imported = hello, imported

    def _expect(self, when: str) -> dict[str, Any]:
        try:
            event = self._receive(IMPORT_TIMEOUT)
        except ServerGone as gone:
            raise inferior_errors.died(when, self._life.exit_code()) from gone
        if event["event"] == "raised":
            raise inferior_errors.error_of(event, self._python)
        return event

    def trace(self, request: TraceRequest) -> TraceRecord:
        """As TraceEngine.run, in a fork. ServerGone where a new server is needed."""
        return warm_or_cold(request, lambda attempt: self._attempt(attempt, time.monotonic()))

    def _attempt(self, request: TraceRequest, since: float) -> TraceRecord:
        with Inferior(self._fork, request.config()) as inferior:
            told = Imported(
                hello=self._hello,
                imported={**self.imported, "seconds": 0.0},  # it was imported before
                libraries=self._libraries.copy(),
            )
            return follow(request, inferior, told, self._warn, since=since)

    def _fork(self, handed: Sequence[int]) -> Forked:
        return Forked(self, int(self.ask({"command": "fork"}, handed)["pid"]))

    def completions(self, text: str) -> list[str]:
        """How a dotted name can go on: its possible last parts."""
        names: list[str] = self.ask({"command": "complete", "text": text})["names"]
        return names

    def ask(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send a question and receive its answer; Ctrl-C waits, so that no answer is left for the next question."""
        with _uninterrupted():
            self._send(message, descriptors)
            return self._receive(_ANSWER_TIMEOUT)

    def _send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # noticed at the next receive
            socket.send_fds(self._socket, [json.dumps(message).encode("ascii")], list(descriptors))

    def _receive(self, timeout: float) -> dict[str, Any]:
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(_PACKET_BYTES)
        except (TimeoutError, ConnectionResetError):
            data = b""
        if not data:
            raise ServerGone("the interpreter that the expressions are forked from died or does not answer.")
        answer: dict[str, Any] = json.loads(data)
        return answer
