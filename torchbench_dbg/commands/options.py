"""What the command line said, as records."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """Which view, and how much of it. `depth`: levels of the tree; `grep`: a regular expression."""

    view: Literal["path", "tree", "stack"] = "path"
    depth: int | None = None
    grep: str | None = None
    show_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """`tdbg trace`. `timeout` in seconds."""

    expression: str
    python: str | None = None
    setup: str | None = None
    script: Path | None = None
    line: int | None = None
    arguments: tuple[str, ...] = ()
    device: str = "cpu"
    dtype: str = "float32"
    seed: int = 0
    cold: bool = False
    load_libraries: tuple[Path, ...] = ()
    breaks: tuple[str, ...] = ()
    hits: int = 1
    gdb: str | None = None
    source: Path | None = None
    timeout: float = 60.0
    max_stops: int = 50_000
    json: bool = False
    output: Path | None = None
    save: bool = True
    view: ViewOptions = field(default_factory=ViewOptions)
