"""Which steps of a build are done: kept on disk, so that the same command goes on where it was."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbench_dbg.paths import state_directory, write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneStep:
    """A step that ended well. `fingerprint`: what it depended on."""

    fingerprint: str
    seconds: float
    finished: float


class BuildState:
    """The steps of the build at one place. Every change is on disk, whole, before the next step begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "steps.json"
        self._done = self._read()

    def _read(self) -> dict[str, DoneStep]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(name): DoneStep(**step) for name, step in data.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def is_done(self, step: str, fingerprint: str) -> bool:
        """Whether the step was done, and what it depends on is as it was then."""
        done = self._done.get(step)
        return done is not None and done.fingerprint == fingerprint

    def seconds(self, step: str) -> float:
        """What the step took when it was done; 0 if it was not."""
        done = self._done.get(step)
        return done.seconds if done else 0.0

    def mark(self, step: str, fingerprint: str, seconds: float) -> None:
        """Note that a step is done."""
        self._done[step] = DoneStep(fingerprint=fingerprint, seconds=seconds, finished=time.time())
        self._write()

    def forget(self, *steps: str) -> None:
        """Note that steps have to be done again."""
        for step in steps:
            self._done.pop(step, None)
        self._write()

    def _write(self) -> None:
        plain = {
            name: {"fingerprint": step.fingerprint, "seconds": step.seconds, "finished": step.finished}
            for name, step in self._done.items()
        }
        write_atomically(self._path, json.dumps(plain, indent=1))


def fingerprint(facts: Any) -> str:
    """A short digest of what a step depends on (anything that JSON takes)."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def builds_directory() -> Path:
    """One folder for each build: its steps, its log; beside it `<identifier>.json`, the manifest of a finished one."""
    return state_directory() / "builds"


def identifier_of(source: Path, profile: str) -> str:
    """`pytorch-debug-1a2b3c`: the name of the build of a tree in a profile."""
    digest = hashlib.sha256(str(source).encode("utf-8", "surrogateescape")).hexdigest()[:6]
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in source.name)
    return f"{name or 'source'}-{profile}-{digest}"
