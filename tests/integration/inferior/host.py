"""Plays the host for the inferior: memory files, pipes, JSON lines; no tracing."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SESSION = Path(__file__).resolve().parents[3] / "torchbench_dbg/inferior/session.py"
FAKE_TORCH = Path(__file__).resolve().parent / "fake_torch"
FAKE = {"PYTHONPATH": str(FAKE_TORCH)}
RING_BYTES = 1 << 20
KINDS = {1: "call", 2: "return", 3: "c_call", 4: "c_return", 5: "line"}
DEFAULTS: dict[str, Any] = {
    "setup": None,
    "script": None,
    "line": None,
    "device": "cpu",
    "dtype": "float32",
    "seed": 0,
    "cold": False,
    "argv": [],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """One record of the ring, its name looked up."""

    kind: str
    name: str
    line: int
    thread: int
    identity: int


@dataclass(kw_only=True)
class Host:
    """One inferior. Use as a context manager: the process is killed and the descriptors are closed at
    the end.
    """

    python: str
    config: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    ring_bytes: int = RING_BYTES
    flags: tuple[str, ...] = ()
    host_pid: int | None = None
    stdin: int = subprocess.DEVNULL
    events: list[dict[str, Any]] = field(default_factory=list)
    pending: bytes = b""

    def __enter__(self) -> Host:
        self.ring = os.memfd_create("ring")
        os.ftruncate(self.ring, self.ring_bytes)
        self.names = os.memfd_create("names")
        control_read, self.control = os.pipe()
        self.reader, events_write = os.pipe()
        inherited = (control_read, events_write, self.ring, self.names)
        arguments = [str(descriptor) for descriptor in inherited] + [str(self.host_pid or os.getpid())]
        self.process = subprocess.Popen(
            [self.python, *self.flags, str(SESSION), *arguments],
            pass_fds=inherited,
            env={**os.environ, **self.environment},
            cwd=self.cwd,
            stdin=self.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(control_read)
        os.close(events_write)
        self.send({**DEFAULTS, **self.config})
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for descriptor in (self.ring, self.names, self.control, self.reader):
            os.close(descriptor)

    def send(self, message: dict[str, Any]) -> None:
        """Write one control line."""
        os.write(self.control, json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float = 60) -> dict[str, Any] | None:
        """The next event; None at the end of the channel."""
        while b"\n" not in self.pending:
            if not select.select([self.reader], [], [], timeout)[0]:
                raise TimeoutError(f"no event within {timeout} s after {self.events}")
            data = os.read(self.reader, 65536)
            if not data:
                return None
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        self.events.append(event)
        if event["event"] == "imported":
            self.send({"command": "prepare"})
        return event

    def until(self, *kinds: str) -> dict[str, Any]:
        """The next event of one of these kinds. AssertionError if another 'raised' or the end comes first."""
        while (event := self.receive()) is not None:
            if event["event"] in kinds:
                return event
            assert event["event"] != "raised", event
        assert self.process.stderr is not None
        raise AssertionError(f"the channel ended after {self.events}; {self.process.stderr.read().decode()}")

    def run(self) -> dict[str, Any]:
        """From the start to 'finished' or 'raised'."""
        event = self.until("ready", "raised")
        if event["event"] == "ready":
            event = self.until("finished", "raised")
        return event

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send a question, return its answer."""
        self.send(message)
        return self.until(message["command"])

    def finish(self) -> tuple[int, str, str]:
        """Say exit; (status, stdout, stderr)."""
        self.send({"command": "exit"})
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), err.decode()

    def name_records(self) -> dict[int, dict[str, Any]]:
        """All names written so far, by id."""
        data = os.pread(self.names, os.fstat(self.names).st_size, 0)
        records = [json.loads(line) for line in data.splitlines()]
        return {record["id"]: record for record in records}

    def counters(self) -> tuple[int, int]:
        """(events written, events dropped)."""
        written, dropped = struct.unpack("<QQ", os.pread(self.ring, 16, 0))
        return written, dropped

    def recorded(self) -> list[RecordedEvent]:
        """All events of the ring."""
        names = self.name_records()
        data = os.pread(self.ring, self.counters()[0] * 16, 64)
        return [
            RecordedEvent(kind=KINDS[kind], name=names[identity]["name"], line=line, thread=thread, identity=identity)
            for kind, identity, line, thread in struct.iter_unpack("<IIII", data)
        ]


def run(python: str, environment: dict[str, str] | None = None, **config: Any) -> dict[str, Any]:
    """'finished' or 'raised' of one run, after the process has ended with status 0 (1 if it never was
    ready).
    """
    with Host(python=python, config={"expression": "", **config}, environment=environment or {}) as host:
        event = host.run()
        status = host.process.wait(30) if event.get("stage") not in (None, "expression") else host.finish()[0]
        assert status == (1 if event.get("stage") not in (None, "expression") else 0)
        return event


def result(python: str, expression: str, **config: Any) -> dict[str, Any]:
    event = run(python, expression=expression, **config)
    assert event["event"] == "finished", event
    found: dict[str, Any] = event["result"]
    return found
