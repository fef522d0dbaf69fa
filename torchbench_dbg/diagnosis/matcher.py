"""Which entries of the catalogue fit the evidence: root causes first, what they explain left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torchbench_dbg.diagnosis.catalogue import CERTAINTIES, Certainty, Conditions, Entry
from torchbench_dbg.diagnosis.evidence import Evidence

_LONGEST_QUOTE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A cause that fits. `consequences`: codes of entries that fit too, and are explained by this one."""

    code: str
    title: str
    certainty: Certainty
    cause: str
    fix: tuple[str, ...]
    known_by: str
    references: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()


def diagnose(entries: Iterable[Entry], evidence: Evidence) -> tuple[Diagnosis, ...]:
    """What fits, the best first; () if the cause is unknown. `possible` entries count only where nothing else fits."""
    matching = {entry.code: (entry, found) for entry in entries if (found := _matches(entry, evidence)) is not None}
    explained = {code for entry, _ in matching.values() for code in entry.explains}
    roots = [each for code, each in matching.items() if code not in explained]
    if any(entry.certainty != "possible" for entry, _ in roots):
        roots = [each for each in roots if each[0].certainty != "possible"]
    roots.sort(key=lambda each: CERTAINTIES.index(each[0].certainty))  # stable: else the file's order
    return tuple(_diagnosis(entry, found, set(matching)) for entry, found in roots)


def _matches(entry: Entry, evidence: Evidence) -> dict[str, str] | None:
    """What the groups of the patterns found; None if the entry does not fit."""
    groups: dict[str, str] = {}
    for name, pattern in _pairs(entry.when):
        found = _search(pattern, getattr(evidence, name))
        if found is None:
            return None
        groups.update({key: value for key, value in found.groupdict().items() if value is not None})
    if any(_search(pattern, getattr(evidence, name)) for name, pattern in _pairs(entry.unless)):
        return None
    return groups


def _pairs(conditions: Conditions) -> Iterable[tuple[str, re.Pattern[str]]]:
    return ((name, pattern) for name, patterns in conditions.items() for pattern in patterns)


def _search(pattern: re.Pattern[str], facts: tuple[str, ...]) -> re.Match[str] | None:
    return next((found for fact in facts if (found := pattern.search(fact))), None)


def _diagnosis(entry: Entry, groups: dict[str, str], matching: set[str]) -> Diagnosis:
    def filled(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda name: _quoted(groups.get(name[1], "?")), text)

    return Diagnosis(
        code=entry.code,
        title=filled(entry.title),
        certainty=entry.certainty,
        cause=filled(entry.cause),
        fix=tuple(filled(each) for each in entry.fix),
        known_by=filled(entry.known_by),
        references=entry.references,
        consequences=tuple(code for code in entry.explains if code in matching),
    )


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
