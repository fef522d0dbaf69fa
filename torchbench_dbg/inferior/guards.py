"""What surrounds the user's code outside of the traced region: errors get their stage, forked children
leave, output can be thrown away.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .failures import StageFailure
from .region import flush, leave_child


def run_to_the_end(code: Any, names: dict[str, Any]) -> None:
    """exec(); a successful sys.exit() is an end like any other."""
    try:
        exec(code, names)
    except SystemExit as error:
        if error.code not in (None, 0):
            raise


@contextlib.contextmanager
def stage(name: str, *files: str) -> Iterator[None]:
    """Whatever is raised inside becomes a StageFailure of that stage."""
    try:
        yield
    except StageFailure:
        raise
    except BaseException as error:
        raise StageFailure(name, error, files) from None


@contextlib.contextmanager
def children_leave() -> Iterator[None]:
    """A process that the code inside forked ends here: one process converses with the host."""
    process = os.getpid()
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
    if os.getpid() != process:
        leave_child(failure)
    if failure is not None:
        raise failure


@contextlib.contextmanager
def standard_output_away() -> Iterator[None]:
    """Send descriptor 1 to /dev/null for a while."""
    flush()
    kept, away = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(away, 1)
    os.close(away)
    try:
        yield
    finally:
        flush()
        os.dup2(kept, 1)
        os.close(kept)
