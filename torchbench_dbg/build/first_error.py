"""The first real error in the log of a build: not the consequences that are printed after it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# What says that something went wrong before.
_CONSEQUENCES = re.compile(
    r"ninja: build stopped|subcommand failed|make(\[\d+\])?: \*\*\*|Failed to get generated_"
    r"|error: subprocess-exited-with-error|note: This error originates from|returned non-zero exit status"
    r"|failed building wheel|Failed to build|"
    r"^FAILED: |Configuring incomplete, errors occurred",
    re.IGNORECASE,
)
_ERRORS = re.compile(
    r"(?P<place>\S+:\d+(:\d+)?): (fatal )?error: |^CMake Error|\berror: |^\w*(Error|Exception): |undefined reference to"
    r"|: error LNK|^c\+\+: fatal error|^g\+\+: fatal error|internal compiler error|cannot find -l"
    r"|^ERROR: |No space left on device|\bKilled\b|^fatal: |^Traceback \(most recent call last\)",
)
# What looks like an error in a healthy log: options, names of files and tests, feature probes of cmake.
_HARMLESS = re.compile(
    r"-W(no-)?error|-- (Performing|Looking for|Check)|\berror(_|\.)?(handling|code|report)|warning: "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundError:
    """An error line, its number in the log (from 1), and the file and line that it names, if any."""

    text: str
    line: int
    place: str | None


def first_error(lines: Iterable[str]) -> FoundError | None:
    """The first line that is an error; of a Python traceback its last line. None if nothing looks like one."""
    traceback: int | None = None
    consequence: FoundError | None = None
    for number, line in enumerate(lines, 1):
        if traceback is not None:
            if line.startswith((" ", "\t")) or not line.strip():
                continue
            return FoundError(text=line.strip(), line=number, place=None)
        if _HARMLESS.search(line):
            continue
        if _CONSEQUENCES.search(line):
            consequence = consequence or FoundError(text=line.strip(), line=number, place=None)
        elif found := _ERRORS.search(line):
            if line.startswith("Traceback"):
                traceback = number
                continue
            return FoundError(text=line.strip(), line=number, place=found["place"])
    return consequence
