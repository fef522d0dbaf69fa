"""What a session of pdb and gdb is given, and what it answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Floor = Literal["pdb", "gdb", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is debugged. `environment` None: this process's own; `stdin`, `stdout`, `stderr`: descriptors that are to be
    used instead of the terminal.
    """

    python: Path
    script: str
    is_module: bool = False
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    directory: Path | None = None
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment that it gets."""
        return os.environ if self.environment is None else self.environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a command: who has the floor now, and what was printed, without the command and the prompts.

    `exit_code` or `signal` if the program has ended.
    """

    at: Floor
    text: str
    seconds: float
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The entry of a function: its name for people, its address in the process."""

    name: str
    address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where pdb stood when gdb was asked for (`place` FILE:LINE, `text` of that line), and what gdb is to stop at.

    `reasons`: functions, each with the piece of the line that runs them, or the name that was `asked` for.
    """

    place: str
    text: str
    reasons: tuple[tuple[tuple[Place, ...], str], ...]
    asked: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        """All functions, each address once."""
        return tuple({place.address: place for some, _ in self.reasons for place in some}.values())
