"""The traced region: markers and the recorder around what the user wants to see, with as little code of
ours inside as possible.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import types
from typing import Any, NoReturn

from .names import is_own_file
from .recorder import Recorder

MARKER = signal.SIGURG
"""Ignored by default, yet reported to a tracer: the host stops here."""


class Region:
    """One execution between two markers. `recorder` None: a plain run, no markers, nothing recorded."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._process = os.getpid()
        self._began = 0.0
        self.seconds = 0.0

    def run(self, code: types.CodeType, names: dict[str, Any]) -> BaseException | None:
        """Execute; the exception that it raised, if it did. A child that the code forked ends here."""
        recorder, thread, kill, marker = self._recorder, threading.get_ident(), signal.pthread_kill, MARKER
        failure: BaseException | None = None
        self.prepare(None)
        if recorder is not None:
            kill(thread, marker)
            recorder.start()
        try:
            exec(code, names)
        except BaseException as error:
            failure = error
        if os.getpid() != self._process:
            leave_child(failure)
        if recorder is not None:
            recorder.stop()
            kill(thread, marker)
        self.seconds = time.perf_counter() - self._began
        return failure

    def prepare(self, frame: types.FrameType | None) -> None:
        """What can be done before the first marker; `frame` is where the region begins, if that is
        inside of running code.
        """
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {MARKER})
        if self._recorder is not None and frame is not None:
            self._recorder.open_frames(frame)
        self._began = time.perf_counter()

    def begin(self) -> None:
        """First marker, for a region that is not one code object. Follows `prepare`."""
        if self._recorder is not None:
            signal.pthread_kill(threading.get_ident(), MARKER)
            self._recorder.start()

    def end(self, failure: BaseException | None) -> None:
        """Second marker. A child that the region forked ends here."""
        if os.getpid() != self._process:
            leave_child(failure)
        if self._recorder is not None:
            self._recorder.stop()
            signal.pthread_kill(threading.get_ident(), MARKER)
        self.seconds = time.perf_counter() - self._began


def flush() -> None:
    """Empty Python's own output buffers."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue


def leave_child(failure: BaseException | None) -> NoReturn:
    """End a forked child as Python would at the end of the program, without a word to the host."""
    status = 0
    if isinstance(failure, SystemExit):
        status = failure.code if isinstance(failure.code, int) else int(failure.code is not None)
    elif failure is not None:
        trace = failure.__traceback__
        while trace is not None and is_own_file(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        traceback.print_exception(type(failure), failure, trace)
        status = 1
    flush()
    os._exit(status & 0xFF)
