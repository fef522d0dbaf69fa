"""What is known of a failure, in the terms that the catalogue's conditions are written in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Each field is a kind of fact, with all facts of that kind. A command fills those that it knows.

    A field that is empty matches no condition, and contradicts none.
    """

    signal: tuple[str, ...] = ()  # SIGSEGV
    fault: tuple[str, ...] = ()  # crash/faults.py: null, stack overflow, past end of file, ...
    instruction: tuple[str, ...] = ()  # crash/instructions.py: AVX-512, ud2, ...
    failing: tuple[
        str, ...
    ] = ()  # library!function of the innermost frame that is not the C library's or the runtime's
    stack: tuple[str, ...] = ()  # library!function of each frame of the failing thread; python!function of Python's
    threads: tuple[str, ...] = ()  # the same of all other threads
    loaded: tuple[str, ...] = ()  # names of the files of loaded libraries
    exception: tuple[str, ...] = ()  # type: text of a C++ exception
    text: tuple[str, ...] = ()  # what was printed: stderr, a log
    machine: tuple[str, ...] = ()  # facts about the machine: lacks avx512f, memory cgroup killed a process, shm full
    process: tuple[str, ...] = ()  # facts about the process: child, forked from a process with threads
