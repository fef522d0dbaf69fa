"""What the shell's tests share: a target with torch, one server for a module, a way to trace without it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg.shell.server import TorchServer
from torchbench_dbg.trace.engine import TraceEngine
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.request import TraceRequest

from ..interpreters import require_torch
from ..trace.conftest import Tdbg

Trace = Callable[..., TraceRecord]


@pytest.fixture(scope="session")
def torch_python() -> Path:
    return Path(require_torch())


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp().parent / "tdbg-cache"


@pytest.fixture(scope="module")
def server(torch_python: Path, cache: Path) -> Iterator[TorchServer]:
    with TorchServer(torch_python, cache=cache, warn=pytest.fail) as server:
        yield server


@pytest.fixture(scope="module")
def request_for(torch_python: Path, cache: Path) -> Callable[..., TraceRequest]:
    def make(expression: str, **options: Any) -> TraceRequest:
        return TraceRequest(python=torch_python, expression=expression, cache_directory=cache, **options)

    return make


@pytest.fixture(scope="module")
def in_shell(server: TorchServer, request_for: Callable[..., TraceRequest]) -> Trace:
    return lambda expression, **options: server.trace(request_for(expression, **options))


@pytest.fixture(scope="module")
def alone(request_for: Callable[..., TraceRequest]) -> Trace:
    """As `tdbg trace` does it."""
    return lambda expression, **options: TraceEngine(request=request_for(expression, **options), warn=pytest.fail).run()


@pytest.fixture
def tdbg(torch_python: Path, tmp_path: Path, cache: Path) -> Tdbg:
    return Tdbg(torch_python, tmp_path, cache)


def descriptors() -> int:
    """Of this process, without those that only garbage holds."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def children(pid: int) -> list[int]:
    """Children of a process, zombies too."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found
