"""An interpreter with torch imported that forks itself for each expression: `session.py serve SOCKET_FD HOST_PID`.

The socket keeps packets apart (SOCK_SEQPACKET); each is a JSON object. The server says 'hello' and 'imported' (or
'raised', and ends), and then answers:

{"command": "fork"}, with the four descriptors of conversation.py attached -> {"pid"}: the child converses on them;
{"command": "wait", "pid"} -> {"code"}: the child has ended, reaped here (Popen.returncode's meaning);
{"command": "complete", "text": "torch.nn.Lin"} -> {"names": [...]}: how the last part could go on.

Nothing of the user's runs here, and no operator: threads that torch starts for its first one would not be in a fork.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import json
import os
import signal
import socket
import time
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from .channel import Channel
from .conversation import Session, converse, die_with, enter_program, leave
from .failures import StageFailure, raised_event
from .introduction import hello_event, import_torch, load_libraries
from .names import NameTable
from .ring import Ring

PACKET_BYTES = 1 << 16
WAIT_SECONDS = 5.0
_DESCRIPTORS = 4


def main(arguments: Sequence[str]) -> NoReturn:
    """Serve until the host closes the socket. `arguments`: SOCKET_FD HOST_PID."""
    descriptor, host = (int(argument) for argument in arguments)
    die_with(host)
    connection = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    # A SIGINT that somebody sends to all of the user's processes is for the host to understand.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Server(connection).run()


class Server:
    """Imports torch, then forks."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._torch: Any = None

    def run(self) -> NoReturn:
        """To the end of the process."""
        config, _ = self._receive()
        enter_program(None, [])
        self._send(hello_event())
        try:
            self._torch, imported = import_torch()
            load_libraries(self._torch, config.get("load_libraries") or [])
        except StageFailure as failure:
            self._send(raised_event(failure.stage, failure.error, failure.files))
            leave(1)
        # What is here now stays: a collection in a child need not touch, and so copy, these pages.
        gc.collect()
        gc.freeze()
        self._send(imported)
        while True:
            message, descriptors = self._receive()
            command = message.get("command")
            if command == "fork":
                self._send({"pid": self._fork(descriptors)})
            elif command == "wait":
                self._send({"code": exit_code(int(message["pid"]))})
            elif command == "complete":
                self._send({"names": completions(self._torch, str(message["text"]))})

    def _fork(self, descriptors: list[int]) -> int:
        reap_strays()
        server, child = os.getpid(), os.fork()
        if child == 0:
            os.setsid()
            die_with(server)
            self._connection.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            converse_forked(self._torch, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return child

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message and its descriptors; the process ends when the host has."""
        data, descriptors, _, _ = socket.recv_fds(self._connection, PACKET_BYTES, _DESCRIPTORS)
        if not data:
            leave(0)
        message: dict[str, Any] = json.loads(data)
        return message, list(descriptors)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode("ascii"))
        except (BrokenPipeError, ConnectionResetError):
            leave(0)


def converse_forked(torch: Any, descriptors: Sequence[int]) -> NoReturn:
    """The conversation of a child."""
    control, events, ring, names = descriptors
    channel = Channel(control, events)
    config = channel.receive()
    if config is None:
        os._exit(1)
    session = Session(channel, config, Ring(ring), NameTable(names))
    converse(channel, lambda: session.run_forked(torch))


def exit_code(child: int) -> int:
    """Wait for a child; its exit code, or minus the signal that killed it. 0 where it goes on for WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            time.sleep(0.0005)
    return 0


def reap_strays() -> None:
    """Children that the host never asked for: it was interrupted before it knew of them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def completions(torch: Any, text: str) -> list[str]:
    """How a dotted name that begins with torch, nn, F or a ready-made tensor can go on: whole last parts, sorted.

    Looked up without running anything: a module's `__getattr__` or a property could import half of torch.
    """
    *path, last = text.split(".")
    if not path:
        return []
    tensor = torch.Tensor
    roots = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, **dict.fromkeys("abxw", tensor)}
    found = roots.get(path[0])
    for part in path[1:]:
        found = inspect.getattr_static(found, part, None)
    if not isinstance(found, (types.ModuleType, type)):
        return []
    names = vars(found) if isinstance(found, types.ModuleType) else dir(found)
    hidden = not last.startswith("_")
    return sorted(name for name in names if name.startswith(last) and not (hidden and name.startswith("_")))
