"""Runs a script as `python script.py` would, and traces one line of it."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

from .failures import LineNotReached, StageFailure
from .namespace import NameList, new_main_module, seed_everything
from .program import BEGIN, END, FAILED, Marked, compile_marked_script, nested_codes
from .region import Region, flush, leave_child

if TYPE_CHECKING:
    from .conversation import Session


def enter_script(path: str) -> dict[str, Any]:
    """The names of a fresh `__main__` for this script."""
    module = new_main_module()
    module.__dict__.update(
        __file__=os.path.abspath(path),
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
        __cached__=None,
    )
    return module.__dict__


class ScriptLine:
    """The first execution of one line. 'ready' is sent when it is reached, and nothing of the script
    runs after it: the conversation ends inside the hook.
    """

    def __init__(self, session: Session, line: int, setup: Any) -> None:
        self._session = session
        self._line = line
        self._setup = setup
        self._script = str(session.script)
        self._owner: int | None = None
        self._lock = threading.Lock()
        self._depth = 0
        self._failure: BaseException | None = None
        self._process = os.getpid()

    def run(self) -> None:
        """Run the script up to the line. Raises StageFailure if that fails, or if the line is not reached."""
        session = self._session
        try:
            self._marked: Marked = compile_marked_script(self._script, self._line)
        except BaseException as error:
            raise StageFailure("script", error, [self._script]) from None
        self._names = enter_script(self._script)
        self._region = Region(session.recorder(nested_codes(self._marked.code), self._names))
        self._listed: NameList = session.make_names(self._names)
        session.run_setup(self._setup, self._names)
        seed_everything(session.torch, int(session.config.get("seed") or 0))
        self._names.update({BEGIN: self._begin, FAILED: self._failed, END: self._end})
        failure: BaseException | None = None
        try:
            exec(self._marked.code, self._names)
        except BaseException as error:
            failure = error
        if os.getpid() != self._process:
            leave_child(failure)
        with self._lock:
            reached = self._owner is not None
        if reached:
            # Another thread is in the line; it ends the process when it has reported.
            threading.Event().wait()
        if failure is None or (isinstance(failure, SystemExit) and failure.code in (None, 0)):
            failure = LineNotReached(f"the script ended without reaching line {self._line} of {self._script}")
        raise StageFailure("script", failure, [self._script])

    def _begin(self) -> None:
        """Hook before the statement: at its first execution, hand over to the host and begin the region."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._owner is None:
                self._owner = threading.get_ident()
            elif self._owner != threading.get_ident():
                return
        self._depth += 1
        if self._depth > 1:
            return
        flush()
        self._session.ready(self._listed)
        self._region.prepare(sys._getframe(1))
        self._region.begin()

    def _failed(self) -> None:
        """Hook for an exception of the statement."""
        if self._depth == 1 and threading.get_ident() == self._owner:
            self._failure = sys.exc_info()[1]

    def _end(self) -> None:
        """Hook after the statement: end the region, report, answer, end the process."""
        if self._owner is None or threading.get_ident() != self._owner:
            return
        self._depth -= 1
        if self._depth:
            return
        self._region.end(self._failure)
        flush()
        visible = visible_names(sys._getframe(1))
        result = visible.get(self._marked.result) if self._marked.result else None
        self._session.report(self._region, self._failure, result, visible, [self._script])
        self._session.answer_questions()
        self._session.end()


def visible_names(frame: types.FrameType) -> dict[str, Any]:
    """Globals and locals of a frame, as the line sees them."""
    names = {**frame.f_globals, **frame.f_locals}
    hidden: list[str] = [BEGIN, FAILED, END]
    return {name: value for name, value in names.items() if name not in hidden}
