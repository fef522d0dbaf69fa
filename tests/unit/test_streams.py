"""Streams that can't be written."""

from __future__ import annotations

import errno
import io

import pytest

from torchbench_dbg import streams
from torchbench_dbg.errors import OutputError


class Failing(io.StringIO):
    """Fails as a full disk or a pipe without a reader does. It has no descriptor."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _text: str) -> int:
        raise OSError(self.number, "No space left on device")

    flush = write  # type: ignore[assignment]


def test_a_full_disk_is_said_as_what_it_is() -> None:
    guard = streams._Guard(Failing(errno.ENOSPC), streams._result_lost)
    with pytest.raises(OutputError, match=r"stdout can't be written: No space left on device\."):
        guard.write("result")


def test_a_reader_that_left_is_not_an_oserror() -> None:
    guard = streams._Guard(Failing(errno.EPIPE), streams._result_lost)
    with pytest.raises(streams.ReaderGone):
        guard.write("result")
    assert not issubclass(streams.ReaderGone, OSError)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, errno.EIO])
def test_talk_that_nobody_hears_is_no_failure(number: int) -> None:
    guard = streams._Guard(Failing(number), streams._talk_lost)
    assert guard.write("warning") == len("warning")


def test_all_else_is_the_streams_own() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    guard = streams._Guard(stream, streams._result_lost)
    assert guard.encoding == "latin-1"
    assert guard.write("é") == 1
    guard.flush()
    assert stream.buffer.getvalue() == b"\xe9"  # type: ignore[attr-defined]
