"""One trace, from the request to the record.

The inferior imports torch at full speed while the symbol indexes are loaded here, on another core. It is seized
only then, so that the import costs no more than a plain run; probes come when the expression is about to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchbench_dbg import errors
from torchbench_dbg.trace import architecture, inferior_errors
from torchbench_dbg.trace.assemble import Assembly, Seen
from torchbench_dbg.trace.breakpoints import Breakpoint, python_names, resolve
from torchbench_dbg.trace.inferior import Inferior, InferiorGone, spawned
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.outcome import Outcome
from torchbench_dbg.trace.probes import ProbeSet
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.request import TraceRequest
from torchbench_dbg.trace.symbols import Category
from torchbench_dbg.trace.tracer import Tracer
from torchbench_dbg.trace.witness import Witness

IMPORT_TIMEOUT = 300.0  # seconds; a cold disk can take minutes over torch's libraries
_MESSAGE_TIMEOUT = 10.0  # seconds, for a message that is due


@dataclass(slots=True, kw_only=True)
class TraceEngine:
    """Runs a request. `warn` gets one line for each thing that is wrong but not fatal."""

    request: TraceRequest
    warn: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)

    def run(self) -> TraceRecord:
        """Trace; the errors of `errors` say why it can't be done."""
        return warm_or_cold(self.request, self._attempt)

    def _attempt(self, request: TraceRequest) -> TraceRecord:
        with Inferior(spawned(request.python), request.config()) as inferior:
            hello = _expect(inferior, "hello", request.python)
            libraries = WatchedLibraries.load(
                [Path(path) for path in hello["torch_libraries"]], request.cache_directory, self.warn
            )
            imported = _expect(inferior, "imported", request.python)
            told = Imported(hello=hello, imported=imported, libraries=libraries)
            return follow(request, inferior, told, self.warn, since=self.started)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an inferior that has imported torch said, and the libraries that were found."""

    hello: dict[str, Any]
    imported: dict[str, Any]
    libraries: WatchedLibraries


def warm_or_cold(request: TraceRequest, attempt: Callable[[TraceRequest], TraceRecord]) -> TraceRecord:
    """What kills or hangs the warm-up run must be met again with the probes in place: without a warm-up."""
    try:
        return attempt(request)
    except _WarmUpFailed as failure:
        record = attempt(replace(request, cold=True))
        return replace(record, notes=(*record.notes, f"traced cold, because the warm-up run {failure}"))


def follow(
    request: TraceRequest, inferior: Inferior, told: Imported, warn: Callable[[str], None], *, since: float
) -> TraceRecord:
    """Trace in an inferior that has imported torch. `since`: when the work began (time.monotonic)."""
    libraries, directory = told.libraries, told.hello.get("torch_directory")
    tracer = _seized(request, inferior, architecture.current())
    try:
        inferior.send({"command": "prepare"})
        ready, at_marker = _prepared(request, inferior, tracer)
        libraries.add_extensions(inferior.pid, directory, request.cache_directory, warn)
        seen = Seen(hello=told.hello, imported=told.imported, ready=ready, total_from=since)
        return _follow(request, inferior, tracer, libraries, seen, at_marker)
    finally:
        tracer.close()


class _WarmUpFailed(Exception):
    pass


def _expect(inferior: Inferior, name: str, python: Path) -> dict[str, Any]:
    """The event of that name. An earlier `raised` becomes the error that it means; a death a TargetError."""
    try:
        event = inferior.receive(timeout=IMPORT_TIMEOUT)
    except InferiorGone as gone:
        when = "before it said a word" if name == "hello" else "while it imported torch"
        raise inferior_errors.died(when, gone.code) from gone
    if event["event"] == "raised":
        raise inferior_errors.error_of(event, python)
    return event


def _seized(request: TraceRequest, inferior: Inferior, machine: architecture.Architecture) -> Tracer:
    categories = {Category.CORE, Category.BLAS} | ({Category.NOISE} if request.include_noise else set())
    return Tracer.follow(
        inferior.pid,
        architecture=machine,
        categories=frozenset(map(int, categories)),
        count_python_events=inferior.count_python_events,
        python_breaks=inferior.python_breaks,
        max_stops=request.max_stops,
        max_hits=request.max_hits,
    )


def _prepared(request: TraceRequest, inferior: Inferior, tracer: Tracer) -> tuple[dict[str, Any], Outcome]:
    """Follow the setup and the warm-up: the `ready` event, and the start marker at which the process stands."""
    outcome = tracer.run(request.timeout)
    if outcome.kind in ("marker", "exited"):
        try:
            event = inferior.receive(timeout=_MESSAGE_TIMEOUT)
        except InferiorGone:
            event = {"event": "gone"}
        if event["event"] == "raised":
            raise inferior_errors.error_of(event, request.python)
        if event["event"] == "ready":
            return event, outcome
    code = outcome.code if outcome.kind == "exited" else -outcome.code
    if outcome.kind == "timeout":
        if not request.cold:
            raise _WarmUpFailed(f"did not end within {request.timeout:g} s")
        raise errors.InferiorTimeout(
            f"the setup or script did not end within {request.timeout:g} s.", hint="give it more: --timeout SECONDS"
        )
    if not request.cold:
        raise _WarmUpFailed(inferior_errors.describe_death(code))
    raise inferior_errors.died("in the setup or script", code)


def _follow(
    request: TraceRequest,
    inferior: Inferior,
    tracer: Tracer,
    libraries: WatchedLibraries,
    seen: Seen,
    at_marker: Outcome,
) -> TraceRecord:
    """From the start marker to the record."""
    told = seen.ready.get("breaks", {})
    breaks = [resolve(text, libraries.loaded, told.get(text)) for text in request.breaks]
    tracer.watch(libraries.by_path)
    titles = _titles(breaks, tracer.probes)
    tracer.break_addresses = frozenset(titles)
    witness = Witness(
        request=request,
        tracer=tracer,
        libraries=libraries,
        titles=titles,
        python_titles=python_names(request.breaks),
        tensor_layout=seen.ready.get("tensor_layout"),
        ring=inferior.ring,
        notes=[wanted.note for wanted in breaks if wanted.note],
    )
    if request.breaks:
        witness.require_gdb()
    started = time.monotonic()
    outcome = _run(request, tracer, witness, at_marker)
    seen.run_seconds = time.monotonic() - started
    return Assembly(
        request=request, inferior=inferior, tracer=tracer, libraries=libraries, witness=witness, seen=seen
    ).record(outcome)


def _titles(breaks: list[Breakpoint], probes: ProbeSet) -> dict[int, str]:
    """Address in the process -> what the person typed."""
    return {
        region.bias + library.index.starts[symbol]: wanted.text
        for wanted in breaks
        for library, symbol in wanted.places
        for region in probes.regions
        if region.library == library.number
    }


def _run(request: TraceRequest, tracer: Tracer, witness: Witness, at_marker: Outcome) -> Outcome:
    """To the end marker, or to whatever comes instead."""
    deadline = time.monotonic() + request.timeout
    tracer.begin(at_marker.tid)
    tracer.go_on(at_marker)
    hits: dict[str, int] = {}
    while True:
        outcome = tracer.run(max(0.05, deadline - time.monotonic()))
        if outcome.kind not in ("hit", "python hit"):
            break
        title = witness.title(outcome)
        hits[title] = hits.get(title, 0) + 1
        if hits[title] <= request.hits:
            paused = time.monotonic()
            witness.at_break(outcome)
            deadline += time.monotonic() - paused
        else:
            tracer.go_on(outcome)
    if outcome.kind == "marker":
        tracer.finish(outcome.tid)
    elif outcome.kind in ("crashed", "timeout"):
        witness.at_end(outcome)
    return outcome
