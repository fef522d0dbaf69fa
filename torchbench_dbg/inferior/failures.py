"""Turns an exception into the 'raised' event: what the user's code did, without the frames of this
directory.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Sequence
from typing import Any

from .names import is_own_file

MAXIMUM_MESSAGE = 10_000
MAXIMUM_TRACEBACK = 60_000


class StageFailure(Exception):
    """The conversation can't go on; `stage` is one of import, setup, script, compile, warm."""

    def __init__(self, stage: str, error: BaseException, files: Sequence[str] = ()) -> None:
        super().__init__(stage)
        self.stage = stage
        self.error = error
        self.files = files


class LineNotReached(Exception):
    """The line to trace does not exist in the script, holds no statement, or was not reached."""


def raised_event(stage: str, error: BaseException, files: Sequence[str] = ()) -> dict[str, Any]:
    """The event for `error`. `files` are the user's own file names ("<expr>", the script): `line` is the
    innermost one in them.
    """
    event: dict[str, Any] = {
        "event": "raised",
        "stage": stage,
        "type": type(error).__qualname__,
        "message": _message(error),
        "traceback": format_traceback(error),
        "line": None,
        "offset": None,
        "text": None,
    }
    position = _last_position(error, files)
    if isinstance(error, SyntaxError) and (error.filename in files or position is None):
        event.update(line=error.lineno, offset=error.offset, text=error.text, message=str(error.msg))
    elif position is not None:
        event.update(line=position.lineno, text=position.line or None)
    return event


def format_traceback(error: BaseException) -> str:
    """Like Python's, without frames of ours; at most MAXIMUM_TRACEBACK characters, the
    end being kept. Never raises.
    """
    if isinstance(error, LineNotReached):
        return ""
    try:
        story = traceback.TracebackException.from_exception(error)
        _drop_own_frames(story)
        text = "".join(story.format())
    except Exception as second:
        text = f"{type(error).__qualname__}: <no traceback: {type(second).__qualname__}>\n"
    return text if len(text) <= MAXIMUM_TRACEBACK else "..." + text[-MAXIMUM_TRACEBACK:]


def register_source(name: str, text: str) -> None:
    """Let tracebacks show the lines of code that is in no file."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def _drop_own_frames(story: traceback.TracebackException | None) -> None:
    """Ours stand around the user's, and inside where an exception came up in the recorder (RecursionError)."""
    while story is not None:
        story.stack[:] = [frame for frame in story.stack if not is_own_file(frame.filename)]
        _drop_own_frames(story.__cause__)
        story = story.__context__


def _last_position(error: BaseException, files: Sequence[str]) -> traceback.FrameSummary | None:
    found: list[traceback.FrameSummary] = []
    try:
        found = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename in files]
    except Exception:
        return None
    return found[-1] if found else None


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as second:
        text = f"<unprintable: {type(second).__qualname__}>"
    return text if len(text) <= MAXIMUM_MESSAGE else text[:MAXIMUM_MESSAGE] + "..."
