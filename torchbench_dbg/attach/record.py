"""The stacks of a running process (`tdbg.stacks/1`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchbench_dbg import records
from torchbench_dbg.trace.record import Frame

SCHEMA = "tdbg.stacks/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One thread: its kernel number, its name, what it was doing, its frames, innermost first.

    `state`: running, sleeping, waiting for a lock, ... as the kernel told just before. `layers`: that of each frame
    (trace/layers.py), "" where it has none.
    """

    native_id: int
    name: str
    state: str
    frames: tuple[Frame, ...]
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksRecord:
    """One look at a process. `stopped`: milliseconds that it stood still. The main thread comes first."""

    tdbg: str
    created: str
    pid: int
    command: str
    stopped: float
    threads: tuple[Thread, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)


def from_json(data: Any) -> StacksRecord:
    """The reverse of `to_json`; RecordError where it does not follow the schema."""
    return records.from_json(StacksRecord, SCHEMA, data, source="the record", again="tdbg attach PID")
