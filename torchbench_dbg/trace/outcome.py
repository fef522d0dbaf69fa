"""What ends or interrupts the following of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Why the tracer stopped following."""

    kind: Literal["marker", "exited", "killed", "crashed", "hit", "python hit", "timeout"]
    tid: int = 0
    code: int = 0  # exit code, signal number, or position of the Python breakpoint
    address: int = 0  # of a fault or of the function that was hit
    program_counter: int = 0
