"""What `tdbg crash` and `tdbg core` found out, as data (`tdbg.crash/1`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torchbench_dbg import records
from torchbench_dbg.diagnosis.matcher import Diagnosis
from torchbench_dbg.trace.record import Frame

SCHEMA = "tdbg.crash/1"
Reason = Literal["crash", "killed", "exit", "timeout", "core"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStack:
    """The frames of one thread, innermost first, Python's and C++'s in one."""

    native_id: int
    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """One process that died (or stood still when the time was over).

    `signal`: SIGSEGV, ...; "none" for a time limit. `fault`: the kind (crash/faults.py), `fault_text` a sentence,
    `address` where. `failing_*`: the innermost frame that is neither the C library's nor a language runtime's.
    `threads`: the failing one first.
    """

    pid: int
    command: str
    is_script: bool
    signal: str
    fault: str = "none"
    fault_text: str = ""
    address: int | None = None
    instruction: str = ""
    instruction_set: str = ""
    exception_type: str = ""
    exception_text: str = ""
    message: str = ""
    failing_function: str = ""
    failing_library: str = ""
    threads: tuple[ThreadStack, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashRecord:
    """A run of a script that did not end well, or a core file. `exit_code` as a shell has it."""

    reason: Reason
    command: tuple[str, ...]
    exit_code: int
    python: str = ""
    seconds: float = 0.0
    crashes: tuple[Crash, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()  # of an ending that was no crash: an exception that the catalogue knows
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)


def from_json(data: Any, *, source: str = "the record") -> CrashRecord:
    """The reverse of `to_json`. RecordError where it does not follow the schema."""
    return records.from_json(CrashRecord, SCHEMA, data, source=source, again="tdbg crash -- SCRIPT")
