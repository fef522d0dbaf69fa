"""One trace, from the request to the record.

The inferior imports torch at full speed while the symbol indexes are loaded here, on another core. It is seized
only when it is ready to run the expression, so nothing before that costs more than a plain run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchbench_dbg import errors
from torchbench_dbg.trace import architecture, ptrace
from torchbench_dbg.trace.assemble import Assembly, Seen
from torchbench_dbg.trace.breakpoints import Breakpoint, python_names, resolve
from torchbench_dbg.trace.dispatch_keys import KeySetReader
from torchbench_dbg.trace.inferior import Inferior, InferiorGone
from torchbench_dbg.trace.injection import SystemCalls
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.probes import ProbeSet, read_mappings, regions_of
from torchbench_dbg.trace.record import TraceRecord
from torchbench_dbg.trace.symbols import Category
from torchbench_dbg.trace.tracer import Outcome, Tracer
from torchbench_dbg.trace.witness import Witness

IMPORT_TIMEOUT = 300.0  # seconds; a cold disk can take minutes over torch's libraries


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """What to trace, and how. Times in seconds."""

    python: Path
    expression: str
    setup: str | None = None
    script: Path | None = None
    line: int | None = None
    arguments: tuple[str, ...] = ()
    device: str = "cpu"
    dtype: str = "float32"
    seed: int = 0
    cold: bool = False
    load_libraries: tuple[Path, ...] = ()
    breaks: tuple[str, ...] = ()
    hits: int = 1
    include_noise: bool = False  # std:: and destructors too
    timeout: float = 60.0
    max_stops: int = 50_000
    max_hits: int = 256
    cache_directory: Path | None = None
    source: Path | None = None
    gdb: str | None = None
    max_break_frames: int = 200

    def config(self) -> dict[str, Any]:
        """The inferior's configuration line."""
        return {
            "expression": self.expression,
            "setup": self.setup,
            "script": str(self.script) if self.script else None,
            "line": self.line,
            "argv": list(self.arguments),
            "device": self.device,
            "dtype": self.dtype,
            "seed": self.seed,
            "cold": self.cold,
            "load_libraries": [str(path) for path in self.load_libraries],
            "breaks": python_names(self.breaks),
            "stops": bool(self.breaks),
        }


@dataclass(slots=True, kw_only=True)
class TraceEngine:
    """Runs a request. `warn` gets one line for each thing that is wrong but not fatal."""

    request: TraceRequest
    warn: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)

    def run(self) -> TraceRecord:
        """Trace; the errors of `errors` say why it can't be done."""
        try:
            return self._attempt(self.request)
        except _WarmUpFailed as failure:
            # What kills or hangs the untraced warm-up run must be met again with the probes in place.
            record = self._attempt(replace(self.request, cold=True))
            return replace(record, notes=(*record.notes, f"traced cold, because the warm-up run {failure}"))

    def _attempt(self, request: TraceRequest) -> TraceRecord:
        machine = architecture.current()
        with Inferior(request.python, request.config()) as inferior:
            hello = _expect(inferior, "hello", IMPORT_TIMEOUT, request)
            libraries = WatchedLibraries.load(
                [Path(path) for path in hello["torch_libraries"]], request.cache_directory, self.warn
            )
            imported = _expect(inferior, "imported", IMPORT_TIMEOUT, request)
            ready = self._ready(inferior, request)
            libraries.add_extensions(
                inferior.pid, hello.get("torch_directory"), request.cache_directory, self.warn
            )
            told = ready.get("breaks", {})
            breaks = [resolve(text, libraries.loaded, told.get(text)) for text in request.breaks]
            seen = Seen(hello=hello, imported=imported, ready=ready)
            return self._follow(request, inferior, machine, libraries, breaks, seen)

    def _ready(self, inferior: Inferior, request: TraceRequest) -> dict[str, Any]:
        try:
            return _expect(inferior, "ready", request.timeout, request)
        except InferiorGone as gone:
            if request.cold:
                raise _died("while it prepared the names", gone.code) from gone
            raise _WarmUpFailed(describe_death(gone.code)) from gone
        except errors.InferiorTimeout as error:
            if request.cold:
                raise errors.InferiorTimeout(
                    f"the setup or script did not end within {request.timeout:g} s.",
                    hint="give it more with --timeout SECONDS",
                ) from error
            raise _WarmUpFailed(f"did not end within {request.timeout:g} s") from error

    def _follow(
        self,
        request: TraceRequest,
        inferior: Inferior,
        machine: architecture.Architecture,
        libraries: WatchedLibraries,
        breaks: list[Breakpoint],
        seen: Seen,
    ) -> TraceRecord:
        mappings = read_mappings(inferior.pid)
        regions = regions_of(mappings, libraries.by_path)
        categories = {Category.CORE, Category.BLAS} | ({Category.NOISE} if request.include_noise else set())
        probes = ProbeSet(inferior.pid, regions, architecture=machine, categories=frozenset(map(int, categories)))
        break_addresses = {
            region.bias + library.index.starts[symbol]: wanted.text
            for wanted in breaks
            for library, symbol in wanted.places
            for region in regions
            if region.library == library.number
        }
        tracer = Tracer(
            pid=inferior.pid,
            probes=probes,
            calls=SystemCalls(machine, mappings, inferior.pid),
            key_sets=KeySetReader(machine, mappings),
            architecture=machine,
            count_python_events=inferior.count_python_events,
            max_stops=request.max_stops,
            max_hits=request.max_hits,
            break_addresses=frozenset(break_addresses),
            python_breaks=inferior.python_breaks,
        )
        witness = Witness(
            request=request,
            tracer=tracer,
            libraries=libraries,
            titles=break_addresses,
            python_titles=python_names(request.breaks),
            tensor_layout=seen.ready.get("tensor_layout"),
            ring=inferior.ring,
            notes=[wanted.note for wanted in breaks if wanted.note],
        )
        try:
            ptrace.seize_all(inferior.pid)
            inferior.send({"command": "go"})
            started = time.monotonic()
            outcome = self._run(tracer, witness, request, inferior)
            seen.run_seconds = time.monotonic() - started
            seen.total_from = self.started
            return Assembly(
                request=request, inferior=inferior, tracer=tracer, libraries=libraries, witness=witness, seen=seen
            ).record(outcome)
        finally:
            tracer.restore_processors()
            probes.close()

    def _run(self, tracer: Tracer, witness: Witness, request: TraceRequest, inferior: Inferior) -> Outcome:
        """From the start marker to the end marker, or to whatever comes instead."""
        deadline = time.monotonic() + request.timeout
        outcome = tracer.run(request.timeout)
        if outcome.kind != "marker":
            return outcome
        tracer.begin(outcome.tid)
        tracer.release(outcome.tid)
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


class _WarmUpFailed(Exception):
    pass


def _expect(inferior: Inferior, name: str, timeout: float, request: TraceRequest) -> dict[str, Any]:
    """The event of that name. An earlier `raised` becomes the error that it means; a death a TargetError."""
    try:
        event = inferior.receive(timeout=timeout)
    except InferiorGone as gone:
        if name == "ready":
            raise
        raise _died("before it said a word" if name == "hello" else "while it imported torch", gone.code) from gone
    if event["event"] == "raised":
        raise error_of(event, request)
    return event


def _died(when: str, code: int) -> errors.TargetError:
    return errors.TargetError(
        f"the target interpreter {describe_death(code)} {when}.",
        hint='see whether it works alone: PYTHON -X faulthandler -c "import torch"',
    )


def describe_death(code: int) -> str:
    """`was killed by SIGSEGV` or `ended with exit code 3`, of a Popen.returncode."""
    import signal

    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"


def error_of(event: dict[str, Any], request: TraceRequest) -> errors.TdbgError:
    """The error that a `raised` event means, with the place in the user's code."""
    stage, kind, message = event["stage"], event["type"], event["message"]
    if stage == "import":
        if kind == "ModuleNotFoundError" and "'torch'" in message:
            return errors.TargetError(
                f"{request.python} has no torch.",
                hint="choose an interpreter that has one: tdbg trace --python PATH ...",
            )
        return errors.TargetError(f"import torch fails in {request.python}: {kind}: {message}", hint="run it alone to see all")
    if kind == "LineNotReached":
        return errors.ExpressionError(message)
    where = {"compile": "the expression", "expression": "the expression", "warm": "the expression"}.get(stage, f"the {stage}")
    if kind in ("SyntaxError", "IndentationError", "TabError"):
        lines = [f"{where} is not valid Python: {message}"]
        if event.get("text"):
            text = str(event["text"]).rstrip("\n")
            lines += [f"  {text}", "  " + " " * (max(1, event.get("offset") or 1) - 1) + "^"]
        return errors.ExpressionError("\n".join(lines))
    return errors.ExpressionError(f"{where} raised {kind}: {message}", hint=event.get("traceback") or None)
