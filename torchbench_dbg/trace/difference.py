"""What is different between two traces: a code change, two dtypes, two devices, two versions of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from torchbench_dbg import records
from torchbench_dbg.trace.operators import TraceAnalysis

SCHEMA = "tdbg.difference/1"

Mark = Literal["same", "removed", "added", "changed"]

_HELPER_LAYERS = frozenset({"core", "iterator", "memory"})  # most of a trace, and the same in every operator
_MOST_ROWS = 20_000  # of one side; aligning takes time that grows with the square


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two traces."""

    source: str
    expression: str
    torch: str
    python: str
    status: str
    calls: int
    kernels: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A call of the one trace, of the other, or of both.

    `depth`: levels below the outermost call that is compared, as in the right trace where both have the call.
    `left` and `right`: positions in the records' `calls`, -1 where that side lacks it. Keys: names, the winner last.
    Counts: equal calls in a row. `changed`: both have the call, with other keys or another count.
    """

    mark: Mark
    name: str
    layer: str
    depth: int
    left: int = -1
    right: int = -1
    left_keys: tuple[str, ...] = ()
    right_keys: tuple[str, ...] = ()
    left_count: int = 0
    right_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDifference:
    """Two traces aligned. `same_result`: by the results' digests, None where one of them has none."""

    left: Side
    right: Side
    same_result: bool | None
    rows: tuple[Row, ...]
    cut: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the calls are the same; results may still differ."""
        return all(row.mark == "same" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)


def from_json(data: Any) -> TraceDifference:
    """The reverse of `to_json`; RecordError where it does not follow the schema."""
    return records.from_json(TraceDifference, SCHEMA, data, source="the record", again="tdbg diff A B --json")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A call, or several equal ones in a row."""

    key: tuple[str, str]
    layer: str
    depth: int
    number: int
    keys: tuple[str, ...]
    count: int


def compare(
    left: TraceAnalysis, right: TraceAnalysis, *, sources: tuple[str, str], everything: bool = False
) -> TraceDifference:
    """Align the calls of two traces by their names, whatever their depth: a layer in between is one row more, not
    another tree.

    `sources`: what the two are called. `everything`: helpers (tensor basics, shapes, allocation) are compared too.
    """
    lines = [list(_lines(each, everything)) for each in (left, right)]
    cut = any(len(each) > _MOST_ROWS for each in lines)
    digests = [each.record.result.digest if each.record.result else None for each in (left, right)]
    return TraceDifference(
        left=_side(left, sources[0]),
        right=_side(right, sources[1]),
        same_result=None if None in digests else digests[0] == digests[1],
        rows=tuple(_aligned(lines[0][:_MOST_ROWS], lines[1][:_MOST_ROWS])),
        cut=cut,
    )


def _side(analysis: TraceAnalysis, source: str) -> Side:
    record = analysis.record
    functions = [analysis.function(use.kernel) for use in analysis.kernels]
    return Side(
        source=source,
        expression=record.expression,
        torch=record.target.torch,
        python=record.target.python,
        status=record.status,
        calls=len(record.calls),
        kernels=tuple(function.name for function in functions if function),
        notes=record.notes,
    )


def _lines(analysis: TraceAnalysis, everything: bool) -> Iterator[_Line]:
    """The calls in order of time, the main thread's first; equal neighbours are one line."""
    record = analysis.record
    main = {thread.id: not thread.main for thread in record.threads}
    depths: dict[int, int] = {-1: 0}
    last: _Line | None = None
    for number in sorted(range(len(record.calls)), key=lambda number: main.get(record.calls[number].thread, True)):
        call = record.calls[number]
        depth = depths.get(call.parent, 0)
        shown = everything or analysis.layer(number) not in _HELPER_LAYERS
        depths[number] = depth + shown
        if not shown:
            continue
        key, keys = _key(analysis, number), record.key_names(call.keys)
        if last is not None and (last.key, last.depth, last.keys) == (key, depth, keys):
            last = _Line(key=key, layer=last.layer, depth=depth, number=last.number, keys=keys, count=last.count + 1)
            continue
        if last is not None:
            yield last
        last = _Line(key=key, layer=analysis.layer(number), depth=depth, number=number, keys=keys, count=1)
    if last is not None:
        yield last


def _key(analysis: TraceAnalysis, number: int) -> tuple[str, str]:
    """(name, file): by which calls of two traces are the same. A line number moves with every edit, so it is none."""
    function = analysis.function(number)
    if function is not None:
        return function.name, ""
    code = analysis.record.codes[analysis.record.calls[number].ref]
    return code.name, (code.file or "").rpartition("/")[2]


def _aligned(left: list[_Line], right: list[_Line]) -> Iterator[Row]:
    matcher = SequenceMatcher(None, [line.key for line in left], [line.key for line in right], autojunk=False)
    for tag, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(left[left_from:left_to], right[right_from:right_to], strict=True):
                yield _common(one, other)
            continue
        for one in left[left_from:left_to]:
            yield Row(
                mark="removed",
                name=_shown_name(one),
                layer=one.layer,
                depth=one.depth,
                left=one.number,
                left_keys=one.keys,
                left_count=one.count,
            )
        for other in right[right_from:right_to]:
            yield Row(
                mark="added",
                name=_shown_name(other),
                layer=other.layer,
                depth=other.depth,
                right=other.number,
                right_keys=other.keys,
                right_count=other.count,
            )


def _common(one: _Line, other: _Line) -> Row:
    return Row(
        mark="same" if (one.keys, one.count) == (other.keys, other.count) else "changed",
        name=_shown_name(other),
        layer=other.layer,
        depth=other.depth,
        left=one.number,
        right=other.number,
        left_keys=one.keys,
        right_keys=other.keys,
        left_count=one.count,
        right_count=other.count,
    )


def _shown_name(line: _Line) -> str:
    name, file = line.key
    return f"{name}  {file}" if file else name
