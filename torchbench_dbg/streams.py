"""The standard streams of tdbg itself: always there, and their failures said as what they are."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

from torchbench_dbg.errors import OutputError


class ReaderGone(Exception):
    """Whoever read stdout has left (`tdbg ... | head`). No OSError: libraries would take it for theirs."""


def prepare() -> None:
    """Put guards in place of sys.stdout and sys.stderr. Called once, before anything is written or opened."""
    _open_missing()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A lone surrogate, or an encoding without box characters, is no reason to fail.
            stream.reconfigure(errors="surrogateescape" if stream is sys.stdin else "backslashreplace")
    sys.stdout = cast(TextIO, _Guard(sys.stdout, _result_lost))
    sys.stderr = cast(TextIO, _Guard(sys.stderr, _talk_lost))


def _open_missing() -> None:
    """A closed stdin, stdout or stderr would give its number to the next file that is opened."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


class _Guard:
    """A text stream whose failing writes end in `lost(error)`. The stream is then sent to /dev/null: what is in its
    buffer must not fail once more when Python exits."""

    def __init__(self, stream: TextIO, lost: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        self._lost(error)


def _result_lost(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        raise ReaderGone from error
    raise OutputError(f"stdout can't be written: {error.strerror}.") from error


def _talk_lost(_error: OSError) -> None:
    """Nobody can be told; the exit code still says how it ended."""
