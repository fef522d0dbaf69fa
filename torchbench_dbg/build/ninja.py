"""ninja's own account of a build: its progress in a pipe, and the log of what each file took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# One record a finished edge, between two control characters that no compiler prints. ninja 1.11 dies of placeholders
# that it does not know, so only those of 1.9 are used: finished, total, running, elapsed seconds.
STATUS = "\x1e%f/%t/%r/%e\x1f"
_RECORD = re.compile(rb"\x1e(\d+)/(\d+)/(\d+)/([\d.]+)\x1f")
_LONGEST_RECORD = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far ninja is. `elapsed` in seconds since it began."""

    finished: int
    total: int
    running: int
    elapsed: float


@dataclass(slots=True)
class ProgressReader:
    """Takes the records out of a stream of output, whatever the borders of its pieces are."""

    _pending: bytes = field(default=b"")

    def feed(self, data: bytes) -> tuple[bytes, list[Progress]]:
        """(the output without the records, the records in it)."""
        data = self._pending + data
        cut = data.rfind(b"\x1e")
        whole = cut < 0 or data.find(b"\x1f", cut) >= 0 or len(data) - cut > _LONGEST_RECORD
        data, self._pending = (data, b"") if whole else (data[:cut], data[cut:])
        found = [
            Progress(finished=int(each[1]), total=int(each[2]), running=int(each[3]), elapsed=float(each[4]))
            for each in _RECORD.finditer(data)
        ]
        return _RECORD.sub(b"", data), found

    def rest(self) -> bytes:
        """What is left at the end of the stream."""
        rest, self._pending = self._pending, b""
        return rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One line of .ninja_log: an output and the seconds that it took the last time.

    `command`: a hash of what made it; all outputs of one command have the same.
    """

    output: str
    seconds: float
    command: str = ""


def read_log(path: Path) -> dict[str, Edge]:
    """The newest entry of each output; empty if there is no log (format of ninja 1.5 on: start, end, mtime, output)."""
    edges: dict[str, Edge] = {}
    for fields in _log_lines(path):
        try:
            seconds = (int(fields[1]) - int(fields[0])) / 1000
            edges[fields[3]] = Edge(output=fields[3], seconds=seconds, command=fields[4])
        except (IndexError, ValueError):
            continue
    return edges


def _log_lines(path: Path) -> Iterator[list[str]]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.startswith("#"):
                    yield line.rstrip("\n").split("\t")
    except OSError:
        return


def slowest(edges: Mapping[str, Edge], count: int = 10) -> list[Edge]:
    """The outputs that took longest, the slowest first; one of each command."""
    by_command = {edge.command: edge for edge in edges.values()}
    return sorted(by_command.values(), key=lambda edge: -edge.seconds)[:count]


def seconds_left(progress: Progress, history: Mapping[str, Edge]) -> float | None:
    """An estimate: what is left at the mean of what is done in this run, or at the mean of earlier runs in the first
    moments. None while nothing is known."""
    left = progress.total - progress.finished
    if progress.finished >= 10 and progress.elapsed > 5:
        return left * progress.elapsed / progress.finished
    if history:
        mean = sum(edge.seconds for edge in history.values()) / len(history)
        return left * mean / max(1, progress.running)
    return None
