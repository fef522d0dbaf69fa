"""The last runs: each has a folder with the command that made it and its record."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import secrets
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from torchbench_dbg import __version__, console
from torchbench_dbg.errors import RecordError
from torchbench_dbg.paths import state_directory, write_atomically

KEPT = 100  # runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `identifier` is also its folder's name and begins with the UTC time."""

    identifier: str
    command: tuple[str, ...]
    directory: str
    version: str
    kind: str
    title: str
    status: str

    @property
    def folder(self) -> Path:
        return runs_directory() / self.identifier

    @property
    def record(self) -> Path:
        return self.folder / f"{self.kind}.json"


def runs_directory() -> Path:
    return state_directory() / "runs"


def save(kind: str, record: str, *, title: str, status: str) -> Run | None:
    """Keep a record (its JSON) as `<kind>.json`.

    A state directory that can't be written costs a warning, not the result.
    """
    now = datetime.datetime.now(datetime.timezone.utc)
    run = Run(
        # Milliseconds: the newest of two runs in a second is known too. Random: two at once are two.
        identifier=f"{now:%Y%m%d-%H%M%S}.{now.microsecond // 1000:03}-{secrets.token_hex(2)}",
        command=tuple(sys.argv),
        directory=str(Path.cwd()),
        version=__version__,
        kind=kind,
        title=title,
        status=status,
    )
    try:
        # The record first: a folder with a command is a whole run.
        write_atomically(run.record, record)
        write_atomically(run.folder / "command.json", json.dumps(asdict(run), ensure_ascii=False))
    except OSError as error:
        console.warn(
            f"the run can't be kept in {runs_directory()}: {error.strerror}. TDBG_STATE_DIR chooses another place."
        )
        return None
    _prune()
    return run


def _prune() -> None:
    with contextlib.suppress(OSError):
        folders = sorted(path for path in runs_directory().iterdir() if path.is_dir())
        for folder in folders[:-KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


def load_all() -> list[Run]:
    """The runs that are kept, the newest first; damaged ones are left out."""
    found = []
    with contextlib.suppress(OSError):
        for folder in sorted(runs_directory().iterdir(), reverse=True):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                data = json.loads((folder / "command.json").read_text(encoding="utf-8"))
                found.append(Run(**{**data, "command": tuple(data["command"])}))
    return found


def find(name: str) -> Run:
    """A run by its identifier, the beginning of one, `last`, or `last~N` (N before the last). RecordError if none."""
    every = load_all()
    if last := re.fullmatch(r"last(?:~(\d{1,4}))?", name):
        number = int(last[1] or 0)
        if number < len(every):
            return every[number]
        raise RecordError(f"there is no run {name}: {len(every)} are kept.", hint="tdbg trace EXPR makes one")
    matching = [run for run in every if run.identifier.startswith(name)] if name else []
    if len(matching) == 1:
        return matching[0]
    what = "is the beginning of several runs" if matching else "is neither a file nor a run"
    raise RecordError(f"{name} {what}.", hint="tdbg runs lists the runs that are kept")
