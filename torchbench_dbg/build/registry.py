"""The builds that were begun or made on this machine: each can be listed, gone on with, entered."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchbench_dbg import records
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.request import BuildRequest
from torchbench_dbg.build.state import builds_directory
from torchbench_dbg.errors import BuildError
from torchbench_dbg.paths import write_atomically

_REQUEST, _STEPS = "request.json", "steps.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBuild:
    """A build: what was asked for, where it is, which steps are done. `finished`: proved to work. `used`: seconds since
    1970 of its last run."""

    identifier: str
    request: BuildRequest
    source: Path
    prefix: Path
    steps: tuple[str, ...]
    finished: bool
    used: float

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"

    def to_json(self) -> dict[str, Any]:
        return {
            "identifier": self.identifier,
            "source": str(self.source),
            "python": str(self.python),
            "profile": self.request.profile,
            "steps": list(self.steps),
            "finished": self.finished,
        }


def remember(plan: BuildPlan) -> None:
    """Keep what was asked for. A rebuild or a run up to a step must not narrow the build down for good."""
    data = {
        name: str(value) if isinstance(value, Path) else value for name, value in records.plain(plan.request).items()
    }
    for name in ("target", "stop_after", "start_from"):
        data.pop(name, None)
    data |= {"source": str(plan.request.source) if plan.request.source else None, "at": str(plan.source)}
    write_atomically(plan.folder / _REQUEST, json.dumps({**data, "prefix": str(plan.prefix)}))


def known_builds() -> list[KnownBuild]:
    """All of them, the one used last first; damaged ones are left out."""
    return sorted(_read_all(), key=lambda build: -build.used)


def _read_all() -> Iterator[KnownBuild]:
    with contextlib.suppress(OSError):
        for folder in builds_directory().iterdir():
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
                yield _read(folder)


def _read(folder: Path) -> KnownBuild:
    data = json.loads((folder / _REQUEST).read_text(encoding="utf-8"))
    source, prefix = Path(data.pop("at")), Path(data.pop("prefix"))
    data["source"] = Path(data["source"]) if data["source"] else None
    data["directory"] = Path(data["directory"])
    steps = folder / _STEPS
    return KnownBuild(
        identifier=folder.name,
        request=BuildRequest(**data),
        source=source,
        prefix=prefix,
        steps=tuple(json.loads(steps.read_text(encoding="utf-8"))) if steps.exists() else (),
        finished=(builds_directory() / f"{folder.name}.json").exists(),
        used=max(path.stat().st_mtime for path in folder.iterdir()),
    )


def find_build(name: str | None) -> KnownBuild:
    """The build of that identifier, or the beginning of one; the one used last if None. BuildError if there is none."""
    every = known_builds()
    if not every:
        raise BuildError("there is no build yet.", hint="tdbg build makes one")
    if name is None:
        return every[0]
    matching = [build for build in every if build.identifier.startswith(name)]
    if len(matching) == 1 or any(build.identifier == name for build in matching):
        return next((build for build in matching if build.identifier == name), matching[0])
    close = difflib.get_close_matches(name, [build.identifier for build in every], n=3, cutoff=0.4)
    what = "is the beginning of several builds" if matching else "is no build"
    raise BuildError(f"{name} {what}.", hint=f"did you mean {', '.join(close)}?" if close else "tdbg builds lists them")
