"""Who watches a build: a live line on a terminal, a heartbeat line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from torchbench_dbg import console
from torchbench_dbg.build import ninja
from torchbench_dbg.build.ninja import Progress

_HEARTBEAT = 30.0  # seconds between lines where there is no terminal


def clock(seconds: float) -> str:
    """`4.2 s`, `3:07`, `1:02:33`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class TalkingWatcher:
    """Writes to stderr: a tick and the seconds of each step, in between how far it is."""

    def __init__(self, ninja_log: Path) -> None:
        self._history = ninja.read_log(ninja_log)
        self._terminal = console.stderr().is_terminal
        self._title = ""
        self._began = 0.0
        self._said = 0.0
        self._progress: Progress | None = None
        self._last_line = ""

    def step_begins(self, title: str) -> None:
        self._title, self._began, self._said = title, time.monotonic(), time.monotonic()
        self._progress, self._last_line = None, ""
        self._show()

    def step_ends(self, *, skipped: bool) -> None:
        self._erase()
        if skipped:
            console.message(f"✓ {self._title}  (done before)")
        else:
            console.message(f"✓ {self._title}  {clock(time.monotonic() - self._began)}")

    def command_begins(self, argv: Sequence[str]) -> None:
        console.detail(f"  $ {' '.join(argv)[:300]}")

    def line(self, text: str) -> None:
        self._last_line = text
        self._show()

    def progress(self, progress: Progress) -> None:
        self._progress = progress
        self._show()

    def quiet(self) -> None:
        self._show(force=True)

    def note(self, text: str) -> None:
        self._erase()
        console.warn(text)

    def failed(self) -> None:
        self._erase()
        console.message(f"✗ {self._title}  {clock(time.monotonic() - self._began)}")

    def _status(self) -> str:
        elapsed = clock(time.monotonic() - self._began)
        if self._progress is None:
            return f"{self._title}  {elapsed}  {self._last_line.strip()}"
        done = self._progress
        rate = done.finished / done.elapsed if done.elapsed else 0.0
        left = ninja.seconds_left(done, self._history)
        eta = f"  about {clock(left)} left" if left else ""
        return f"{self._title}  {done.finished}/{done.total}  {rate:.1f}/s  {elapsed}{eta}"

    def _show(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if self._terminal:
            if force or now - self._said > 0.1:
                self._said = now
                console.redraw(self._status())
        elif now - self._said > _HEARTBEAT:
            self._said = now
            console.message(self._status())

    def _erase(self) -> None:
        if self._terminal:
            console.redraw("")
