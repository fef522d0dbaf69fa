"""The transcript of a recipe: what was typed, what the debuggers printed, and what of it was expected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torchbench_dbg import records

SCHEMA = "tdbg.transcript/1"
Status = Literal["green", "red", "skipped", "timeout", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A regular expression, and whether what was printed matches."""

    pattern: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One command and its answer. `seconds` until the next prompt."""

    debugger: Literal["pdb", "gdb"]
    prompt: str
    command: str
    output: str
    seconds: float
    note: str | None = None
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTranscript:
    """What happened in one stage."""

    name: str
    title: str
    debugger: Literal["pdb", "gdb"]
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A recipe that was played. `target`: versions and paths of what it ran on. `failure`: why it is not green."""

    recipe: str
    title: str
    teaches: str
    watch: tuple[str, ...]
    then: tuple[str, ...]
    script: str
    target: dict[str, str]
    status: Status
    stages: tuple[StageTranscript, ...]
    seconds: float
    failure: str | None = None

    def expectations(self) -> Iterator[tuple[StageTranscript, Exchange, Expectation]]:
        for stage in self.stages:
            for exchange in stage.exchanges:
                for expectation in exchange.expectations:
                    yield stage, exchange, expectation

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)


def from_json(data: Any) -> Transcript:
    """The reverse of `Transcript.to_json`. RecordError where it does not follow the schema."""
    return records.from_json(Transcript, SCHEMA, data, source="this transcript", again="tdbg run NAME")
