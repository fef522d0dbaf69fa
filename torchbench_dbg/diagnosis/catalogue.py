"""The catalogue's entries, read from the TOML files beside this module.

[[entry]]
code = "C001"                  # a letter for the family, a number; stable
title = "..."                  # what happened, in a line
cause = "..."                  # why, in a few sentences
fix = ["...", "$ command"]     # what to do, in order; commands begin with "$ "
known_by = "..."               # how tdbg knows; {name} stands for what a pattern's group of that name found
references = ["https://..."]   # public ones
certainty = "certain"          # certain: nothing else looks like this; likely; possible: where nothing better is known
explains = ["C040"]            # entries that are its consequences
when = {signal = ["SIGILL"]}   # field of Evidence -> regular expressions: each must be found in one of its facts
unless = {...}                 # the same: none may be found
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast

from torchbench_dbg.diagnosis.evidence import Evidence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Certainty = Literal["certain", "likely", "possible"]
CERTAINTIES: tuple[Certainty, ...] = ("certain", "likely", "possible")
Conditions = Mapping[str, tuple[re.Pattern[str], ...]]
_FACTS = frozenset(field.name for field in fields(Evidence))
_TEXTS = ("code", "title", "cause", "known_by", "certainty")


class CatalogueError(ValueError):
    """An entry is not as it must be: a fault of tdbg itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A known failure; the module says what the fields mean."""

    code: str
    title: str
    cause: str
    fix: tuple[str, ...]
    known_by: str
    certainty: Certainty
    when: Conditions
    unless: Conditions
    references: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()


@functools.cache
def load(family: str) -> tuple[Entry, ...]:
    """The entries of a family (crash, ...), in the order of the file."""
    path = Path(__file__).parent / f"{family}.toml"
    return tuple(_entry(data) for data in tomllib.loads(path.read_text(encoding="utf-8"))["entry"])


def _entry(data: dict[str, Any]) -> Entry:
    where = f"entry {data.get('code')}"
    if missing := [name for name in (*_TEXTS, "fix", "when") if not data.get(name)]:
        raise CatalogueError(f"{where} lacks {', '.join(missing)}")
    if unknown := set(data) - {*_TEXTS, "fix", "when", "unless", "references", "explains"}:
        raise CatalogueError(f"{where} has unknown {', '.join(sorted(unknown))}")
    if data["certainty"] not in CERTAINTIES:
        raise CatalogueError(f"{where}: {data['certainty']!r} is no certainty")
    return Entry(
        **{name: " ".join(data[name].split()) for name in ("code", "title", "cause", "known_by")},
        certainty=cast(Certainty, data["certainty"]),
        fix=tuple(data["fix"]),
        references=tuple(data.get("references", ())),
        explains=tuple(data.get("explains", ())),
        when=_conditions(data["when"], where),
        unless=_conditions(data.get("unless", {}), where),
    )


def _conditions(data: dict[str, list[str]], where: str) -> Conditions:
    if unknown := set(data) - _FACTS:
        raise CatalogueError(f"{where}: evidence has no {', '.join(sorted(unknown))}")
    try:
        return {name: tuple(re.compile(text, re.MULTILINE) for text in texts) for name, texts in data.items()}
    except re.error as error:
        raise CatalogueError(f"{where}: {error.pattern!r}: {error}") from error
