"""The memory-mapped file through which the host sees Python events while this process is stopped.

Little endian. Bytes 0..7: u64 count of records; 8..15: u64 number of events dropped because the file was
full; from byte 64: records of 16 bytes, u32 kind, u32 name id, u32 line, u32 native thread id. A record
is complete before the count includes it: the host may stop this process between any two machine
instructions.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
from collections.abc import Callable

CALL, RETURN, C_CALL, C_RETURN, LINE = 1, 2, 3, 4, 5

HEADER_BYTES = 64
RECORD_BYTES = 16
COUNT_WORD = 0
DROPPED_WORD = 1

Writer = Callable[[int, int], None]
"""Appends one record, given as two 64-bit words: `kind | name id << 32` and `line | thread id << 32`."""


class Ring:
    """The mapped file. `write` appends a record; see Writer."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        size = os.fstat(descriptor).st_size
        if size < HEADER_BYTES + RECORD_BYTES:
            raise ValueError(f"the event file has {size} bytes, too small for one record")
        self.capacity = (size - HEADER_BYTES) // RECORD_BYTES
        end = (HEADER_BYTES + RECORD_BYTES * self.capacity) // 8
        # One item is one aligned 8-byte store, so the host never reads half a count.
        self.words = memoryview(mmap.mmap(descriptor, size)).cast("B")[: end * 8].cast("Q")
        self.write: Writer = self._unlocked_writer() if _only_jumps_switch_threads() else self._locked_writer()

    def _unlocked_writer(self) -> Writer:
        words, base = self.words, HEADER_BYTES // 8

        def write(first: int, second: int) -> None:
            # No call, no jump: CPython 3.10 and later can't switch threads between these lines, so no lock
            # is needed. (3.10 can at a conditional jump, hence the exception where one would compare.)
            try:
                index = base + 2 * words[COUNT_WORD]
                words[index] = first
                words[index + 1] = second
                words[COUNT_WORD] += 1
            except IndexError:
                words[DROPPED_WORD] += 1

        return write

    def _locked_writer(self) -> Writer:
        lock, unlocked = threading.Lock(), self._unlocked_writer()

        def write(first: int, second: int) -> None:
            with lock:
                unlocked(first, second)

        return write


def _only_jumps_switch_threads() -> bool:
    """Whether the interpreter gives up its lock at calls and jumps only: 3.9 does so between any two
    instructions, a free-threaded build has no such lock.
    """
    with_lock = getattr(sys, "_is_gil_enabled", None)
    return sys.version_info >= (3, 10) and (with_lock is None or bool(with_lock()))
