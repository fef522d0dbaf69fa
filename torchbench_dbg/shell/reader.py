"""Where the shell's input is from: lines of a stream, or a person at the prompt (prompt.py)."""

from __future__ import annotations

import codeop
import warnings
from collections.abc import Iterable, Iterator


def is_whole(text: str) -> bool:
    """Whether what was typed can run: a block ends with an empty line, anything else where Python's grammar does.

    What can never become Python is whole too: the target says what is wrong with it.
    """
    if text.lstrip().startswith(":"):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if codeop.compile_command(text, "<shell>", "exec") is None:
                return False
    except (SyntaxError, ValueError, OverflowError):
        return True
    last = text.rpartition("\n")[2]
    return not ("\n" in text and last[:1].isspace() and last.strip())


def is_nothing(text: str) -> bool:
    """Whether there is only white space and comments."""
    return all(not line.strip() or line.strip().startswith("#") for line in text.splitlines())


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Commands and expressions of a stream, each whole; what the end cuts off comes too."""
    waiting = ""
    for line in lines:
        waiting += line.rstrip("\r\n")
        if is_whole(waiting):
            if not is_nothing(waiting):
                yield waiting.rstrip()
            waiting = ""
        else:
            waiting += "\n"
    if not is_nothing(waiting):
        yield waiting.rstrip()
