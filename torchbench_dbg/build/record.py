"""The record of a build, and its manifest: what was built with what, so that doctor can compare later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torchbench_dbg import records

SCHEMA = "tdbg.build/1"

Status = Literal["finished", "stopped", "failed", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step. `seconds`: of this run, or of the run that did it if it was `skipped` now."""

    name: str
    seconds: float
    skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRecord:
    """A variable of the build and where its value is from."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRecord:
    """A program that the build called, and its version."""

    name: str
    path: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedLibrary:
    """A library that the import loaded from this build."""

    path: str
    has_dwarf: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a fresh interpreter outside of the sources said. `trained`: whether a step of training moved parameters.
    `breakpoint`: the place that gdb gives for a function of it, as "torch/csrc/stub.c:8"; None without lines.
    """

    file: str
    version: str
    debug: bool
    trained: bool | None
    breakpoint: str | None
    libraries: tuple[ProvedLibrary, ...]

    def to_json(self) -> dict[str, Any]:
        return records.plain(self)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The step and command that failed, the first error in the log, and the end of what was printed."""

    step: str
    command: str
    code: int
    error: str
    log_line: int
    tail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFile:
    """A file that took long to compile, in seconds."""

    output: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """What ccache did in this run; `errors`: neither (a link, a preprocessor run)."""

    hits: int
    misses: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """One run of `tdbg build`. `python`: the interpreter that a finished build is imported by."""

    tdbg: str
    created: str
    identifier: str
    status: Status
    source: str
    python: str
    profile: str
    commit: str | None
    target: str | None
    jobs: int
    machine: str
    steps: tuple[StepRecord, ...]
    variables: tuple[VariableRecord, ...]
    tools: tuple[ToolRecord, ...]
    log: str
    failure: Failure | None = None
    proof: Proof | None = None
    slowest: tuple[SlowFile, ...] = ()
    cache: CacheUse | None = None

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)


def from_json(data: Any) -> BuildRecord:
    """The reverse of `to_json`; RecordError where it does not follow the schema."""
    return records.from_json(BuildRecord, SCHEMA, data, source="the record", again="tdbg build")
