"""What to build, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

PYTORCH = "https://github.com/pytorch/pytorch.git"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One request, as the command line says it. `jobs`: None for as many as the machine can take.

    `source`: a tree that is there; without it one is cloned from `repo` at `ref` into `directory`/source.
    """

    source: Path | None = None
    repo: str = PYTORCH
    ref: str | None = None
    directory: Path = field(default_factory=lambda: Path("pytorch-build"))
    profile: str = "debug"
    cuda: bool = False
    architectures: str | None = None
    environment: str = "auto"
    channel: str = "conda-forge"
    python_version: str | None = None
    jobs: int | None = None
    linker: str | None = None
    use_ccache: bool = True
    ccache_size: str = "25G"
    remote_cache: str | None = None
    distcc: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    stop_after: str | None = None
    start_from: str | None = None
    allow_dirty: bool = False
