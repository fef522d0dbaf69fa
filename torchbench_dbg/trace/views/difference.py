"""The difference of two traces, as a unified diff of their calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher

from rich.text import Text

from torchbench_dbg.trace.difference import Row, Side, TraceDifference
from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.views.style import layer_style

_CONTEXT = 3  # equal rows around a different one
_LONGEST_DETAIL = 60  # characters
_MARKS = {"same": " ", "removed": "-", "added": "+", "changed": "~"}
_STYLES = {"removed": "red", "added": "green", "changed": "yellow"}


def lines(difference: TraceDifference, *, whole: bool = False) -> Iterator[Text]:
    """The two sides, the calls that differ and what is around them (`whole`: all calls), the kernels, the result."""
    width = max(len(difference.left.source), len(difference.right.source))
    yield _side_line("-", difference.left, width)
    yield _side_line("+", difference.right, width)
    yield Text("")
    if difference.is_empty and not whole:
        yield Text("the same calls, with the same dispatch keys, in the same order", style="bold")
    else:
        yield from _rows(difference.rows, whole=whole)
    yield Text("")
    yield from _summary(difference)


def _side_line(mark: str, side: Side, width: int) -> Text:
    expression = " ⏎ ".join(side.expression.splitlines())
    text = Text.assemble((f"{mark} {side.source:<{width}}  ", "bold"), (expression, "red" if mark == "-" else "green"))
    text.append(f"  torch {side.torch} · Python {side.python} · {side.status}", style="dim")
    return text


def _rows(rows: tuple[Row, ...], *, whole: bool) -> Iterator[Text]:
    near = set(range(len(rows))) if whole else _near_a_difference(rows)
    details = _details(rows)
    skipped = 0
    for number, row in enumerate(rows):
        if number not in near:
            skipped += 1
            continue
        if skipped:
            yield Text(f"  … {skipped} equal call{'s' * (skipped > 1)}", style="dim")
            skipped = 0
        yield from _row(row, details.get(number, ""))
    if skipped:
        yield Text(f"  … {skipped} equal call{'s' * (skipped > 1)}", style="dim")


def _near_a_difference(rows: tuple[Row, ...]) -> set[int]:
    """Positions of the different rows, of those around them, and of the calls in which these are."""
    near: set[int] = set()
    for number, row in enumerate(rows):
        if row.mark != "same":
            near.update(range(max(0, number - _CONTEXT), min(len(rows), number + _CONTEXT + 1)))
    for number in sorted(near):
        depth = rows[number].depth
        while number > 0 and depth > 0:
            number -= 1
            if number in near and rows[number].depth < depth:
                break  # its own callers are looked at from there
            if rows[number].depth < depth:
                near.add(number)
                depth = rows[number].depth
    return near


def _details(rows: tuple[Row, ...]) -> dict[int, str]:
    """By the position of a row: what its whole name has and its counterpart's has not, where both look the same for
    people (`callback_fn<...>` of float and of double)."""
    details: dict[int, str] = {}
    gone: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.mark == "removed":
            gone[shorten(row.name)] = number
        elif row.mark == "added" and (other := gone.pop(shorten(row.name), None)) is not None:
            details[other], details[number] = _different_parts(rows[other].name, row.name)
        elif row.mark not in ("removed", "added"):
            gone.clear()
    return details


def _different_parts(one: str, other: str) -> tuple[str, str]:
    """The words of two names that only the one and only the other has, in order."""
    words = [re.findall(r"[A-Za-z_][\w:]*", name) for name in (one, other)]
    parts: tuple[list[str], list[str]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
        if tag != "equal":
            parts[0].extend(words[0][a:b])
            parts[1].extend(words[1][c:d])
    first, second = (", ".join(dict.fromkeys(each)) for each in parts)
    return first[:_LONGEST_DETAIL], second[:_LONGEST_DETAIL]


def _row(row: Row, detail: str) -> Iterator[Text]:
    style = _STYLES.get(row.mark, layer_style(row.layer))
    name = row.name if row.layer == "python" else shorten(row.name)
    text = Text(f"{_MARKS[row.mark]} {'  ' * row.depth}", style=_STYLES.get(row.mark, ""))
    text.append(name, style=style)
    if detail:
        text.append(f" of {detail}", style=style)
    text.append(f"  {row.layer}", style="dim")
    counts = {row.left_count, row.right_count} - {0}
    if len(counts) == 2:
        text.append(f"  ×{row.left_count} → ×{row.right_count}", style="bold yellow")
    elif counts != {1}:
        text.append(f"  ×{counts.pop()}", style="bold")
    yield text
    if row.left_keys != row.right_keys and row.mark == "changed":
        yield Text(
            f"    {'  ' * row.depth}keys {', '.join(row.left_keys)} → {', '.join(row.right_keys)}", style="magenta"
        )


def _summary(difference: TraceDifference) -> Iterator[Text]:
    left, right = Counter(difference.left.kernels), Counter(difference.right.kernels)
    if left == right:
        yield Text.assemble(("kernels  ", "bold"), "the same")
    else:
        for mark, kernels, style in (("-", left - right, "red"), ("+", right - left, "green")):
            for name, count in kernels.items():
                times = f" ×{count}" if count > 1 else ""
                yield Text.assemble(("kernels  ", "bold"), (f"{mark} {shorten(name)}{times}", style))
    results = {True: "the same bits", False: "different", None: "one of them has none"}
    yield Text.assemble(("result   ", "bold"), results[difference.same_result])
    for side in (difference.left, difference.right):
        for note in side.notes:
            yield Text.assemble(("note     ", "yellow"), f"{side.source}: {note}")
    marks = Counter(row.mark for row in difference.rows)
    parts = [f"{marks[mark]} {mark}" for mark in ("removed", "added", "changed", "same") if marks[mark]]
    yield Text(f"{difference.left.calls} and {difference.right.calls} calls; compared: {', '.join(parts)}", style="dim")
    if difference.cut:
        yield Text("note     a trace is so long that only its beginning is compared", style="yellow")
