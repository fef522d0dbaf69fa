"""A compiler cache that machines share, and compilers on another host: real servers on the loopback address."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from .conftest import Builder
from .trees import copy_tree

OBJECTS = 5


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(port)


@pytest.fixture
def started() -> Iterator[Callable[..., None]]:
    """Starts servers; they end with the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*command: str, port: int, log: IO[bytes] | None = None, **environment: str) -> None:
        processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log or subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )
        )
        wait_for(port)

    yield start
    for process in processes:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def redis(tmp_path: Path, started: Callable[..., None]) -> str:
    port = free_port()
    started("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path), port=port)
    return f"redis://127.0.0.1:{port}"


class Store(http.server.BaseHTTPRequestHandler):
    """The HTTP that ccache speaks: GET, HEAD, PUT and DELETE of keys."""

    entries: dict[str, bytes] = {}

    def do_GET(self) -> None:
        found = self.entries.get(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found or b"")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.entries[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def web() -> Iterator[str]:
    Store.entries = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/cache"
    server.shutdown()


@pytest.mark.parametrize("kind", ["redis", "web", "file"])
def test_a_second_machine_hits_what_the_first_compiled(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Another machine: another directory for the sources, another environment, an empty cache of its own."""
    address = f"file:{tmp_path / 'shared'}" if kind == "file" else str(request.getfixturevalue(kind))
    uses = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        copy_tree(folder / f"tree-of-{name}", "setuptools")
        arguments = ["--source", f"tree-of-{name}", "--env-manager", "uv", "--remote-cache", address]
        uses.append(Builder(folder).record(*arguments, "--stop-after", "compile")["cache"])
    assert (uses[0]["hits"], uses[0]["misses"]) == (0, OBJECTS)
    # The Python module's source includes the headers of its own environment's Python: the same here.
    assert (uses[1]["hits"], uses[1]["misses"]) == (OBJECTS, 0)


def test_files_are_compiled_by_distccd(tmp_path: Path, started: Callable[..., None]) -> None:
    port = free_port()
    # As root distccd becomes another user, who may not write below the test's directory.
    user = ["--user", "nobody"] if os.geteuid() == 0 else []
    listen = ["--allow", "127.0.0.1", "--listen", "127.0.0.1", "--port", str(port), "--enable-tcp-insecure"]
    with (tmp_path / "distccd.log").open("wb") as log:
        options = ["--no-detach", "--log-stderr", "--log-level", "info"]
        started("distccd", *options, *listen, *user, port=port, log=log, TMPDIR="/tmp")
    copy_tree(tmp_path / "tree", "setuptools")
    arguments = ["--source", "tree", "--env-manager", "uv", "--stop-after", "compile"]
    record = Builder(tmp_path).record(*arguments, "--distcc", f"127.0.0.1:{port}/3")
    assert record["jobs"] == 3
    assert (tmp_path / "distccd.log").read_text().count("COMPILE_OK") >= OBJECTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--remote-cache", "ftp://host"], "a redis://, http:// or file:/ address is expected"),
        (["--remote-cache", "redis://host", "--no-ccache"], "leave --no-ccache out"),
        (["--ccache-size", "much"], "a size as 25G is expected"),
    ],
)
def test_caches_that_can_not_be_meant(builder: Builder, arguments: list[str], said: str) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    done = builder("--source", "tree", *arguments)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
