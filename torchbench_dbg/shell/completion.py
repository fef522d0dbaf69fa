"""What Tab offers: names of torch, commands, and their values."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from torchbench_dbg.shell.choices import SETTINGS
from torchbench_dbg.shell.commands import COMMANDS

_TOP = ("torch", "nn", "F", "a", "b", "x", "w")
_DOTTED = re.compile(r"[A-Za-z_][\w.]*$")


def complete(text: str, names: Sequence[str], ask: Callable[[str], list[str]]) -> Iterator[tuple[str, int]]:
    """(word, how many characters before the cursor it replaces) for the text before the cursor.

    `names`: what the setup defined; `ask`: how a dotted name can go on, which the target knows.
    """
    command = re.match(r"\s*:(\w*)$", text)
    name = re.match(r"\s*:set\s+(\w*)$", text)
    setting = re.match(r"\s*:set\s+(\w+)\s+(\S*)$", text)
    if command:
        yield from _matching(command[1], COMMANDS)
    elif name:
        yield from _matching(name[1], SETTINGS)
    elif setting:
        yield from _matching(setting[2], SETTINGS[setting[1]].values if setting[1] in SETTINGS else ())
    elif found := _DOTTED.search(text):
        last = found[0].rpartition(".")[2]
        if "." in found[0]:
            yield from _matching(last, ask(found[0]))
        else:
            yield from _matching(last, dict.fromkeys([*_TOP, *names, *keyword.kwlist, *dir(builtins)]))


def _matching(start: str, words: Iterable[str]) -> Iterator[tuple[str, int]]:
    hidden = not start.startswith("_")
    for word in words:
        if word.startswith(start) and not (hidden and word.startswith("_")):
            yield word, len(start)
