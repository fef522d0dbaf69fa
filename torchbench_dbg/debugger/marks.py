"""The marks by which a debugger on a pseudo-terminal tells the host where it is, and text without them.

A mark is ESC ] 7774 ; TOKEN ; TEXT BEL: an operating system command that no terminal has. The token is made anew for
each session, so that nothing that a program prints can be taken for one. Inside of a prompt a mark stands between
\\001 and \\002, which tell readline that it has no width.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_AROUND = bytes.maketrans(b"", b""), b"\x01\x02"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """`prompt`, `run`, `gdb {...}`: a word, and what comes with it."""

    word: str
    rest: str


@dataclass(slots=True)
class MarkReader:
    """Takes what a terminal prints, piece by piece, and parts text from marks."""

    token: str
    _pending: bytes = field(default=b"", init=False)

    def feed(self, data: bytes) -> list[bytes | Mark]:
        """Text and marks in their order. The beginning of a mark is kept back until the rest is here."""
        start = f"\x1b]7774;{self.token};".encode()
        pending = self._pending + data.translate(*_AROUND)
        found: list[bytes | Mark] = []
        while (at := pending.find(start)) >= 0 and (end := pending.find(b"\x07", at)) >= 0:
            if at:
                found.append(pending[:at])
            word, _, rest = pending[at + len(start) : end].decode("utf-8", "replace").partition(" ")
            found.append(Mark(word=word, rest=rest))
            pending = pending[end + 1 :]
        keep = len(pending) - at if at >= 0 else _overlap(pending, start)
        if text := pending[: len(pending) - keep]:
            found.append(text)
        self._pending = pending[len(pending) - keep :]
        return found


def _overlap(text: bytes, start: bytes) -> int:
    """How many bytes at the end of the text may be the beginning of a mark."""
    return next((size for size in range(min(len(text), len(start) - 1), 0, -1) if start.startswith(text[-size:])), 0)


def plain(data: bytes) -> str:
    """What a terminal shows of it: no escape sequences, lines end with \\n, a line that is overwritten counts once."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))
