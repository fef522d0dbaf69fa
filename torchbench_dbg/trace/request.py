"""What to trace, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbench_dbg.trace.breakpoints import python_names


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """One request. Times in seconds."""

    python: Path
    expression: str
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
    include_noise: bool = False  # std:: and destructors too
    timeout: float = 60.0
    max_stops: int = 50_000
    max_hits: int = 256
    cache_directory: Path | None = None
    source: Path | None = None
    gdb: str | None = None

    def config(self) -> dict[str, Any]:
        """The inferior's configuration line."""
        return {
            "expression": self.expression,
            "setup": self.setup,
            "script": str(self.script) if self.script else None,
            "line": self.line,
            "argv": list(self.arguments),
            "device": self.device,
            "dtype": self.dtype,
            "seed": self.seed,
            "cold": self.cold,
            "load_libraries": [str(path) for path in self.load_libraries],
            "breaks": python_names(self.breaks),
            "stops": bool(self.breaks),
        }
