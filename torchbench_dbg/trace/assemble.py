"""From what the tracer saw to the record."""

from __future__ import annotations

import datetime
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchbench_dbg import __version__, errors
from torchbench_dbg.trace import layers, procfs
from torchbench_dbg.trace.autograd_nodes import read_forward_operators
from torchbench_dbg.trace.calltree import Merged, merge, read_ring
from torchbench_dbg.trace.inferior import Inferior, InferiorGone
from torchbench_dbg.trace.libraries import WatchedLibraries
from torchbench_dbg.trace.livestack import Entry
from torchbench_dbg.trace.names import demangle
from torchbench_dbg.trace.outcome import Outcome
from torchbench_dbg.trace.probes import Probe
from torchbench_dbg.trace.record import (
    Failure,
    Function,
    Library,
    Name,
    Operator,
    Result,
    Status,
    TargetFacts,
    Thread,
    TraceRecord,
)
from torchbench_dbg.trace.source import located
from torchbench_dbg.trace.symbols import Category
from torchbench_dbg.trace.tracer import Tracer

if TYPE_CHECKING:
    from torchbench_dbg.trace.request import TraceRequest
    from torchbench_dbg.trace.witness import Witness


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the inferior said before it was seized, and when."""

    hello: dict[str, Any]
    imported: dict[str, Any]
    ready: dict[str, Any]
    run_seconds: float = 0.0
    total_from: float = 0.0


@dataclass(slots=True)
class FunctionTable:
    """Numbers functions in the order in which they were first entered."""

    libraries: WatchedLibraries
    numbers: dict[int, int] = field(default_factory=dict)  # address in the process -> number
    functions: list[Function] = field(default_factory=list)

    def number(self, entry: Entry) -> int:
        probe = entry.probe
        number = self.numbers.get(probe.address)
        if number is None:
            number = self.numbers[probe.address] = len(self.functions)
            self.functions.append(self._function(probe))
        return number

    def _function(self, probe: Probe) -> Function:
        index, library = probe.region.index, self.libraries.loaded[probe.region.library]
        symbol = index.name(probe.symbol)
        offset = index.starts[probe.symbol]
        name = demangle(symbol) if symbol else f"{library.path.name}+{offset:#x}"
        return Function(
            library=library.number,
            offset=offset,
            symbol=symbol,
            name=name,
            layer=layers.layer_of(
                name, blas=index.categories[probe.symbol] == Category.BLAS, extension=library.extension
            )
            if symbol
            else "unnamed",
            after=demangle(index.neighbour(probe.symbol)) or None if not symbol else None,
        )


@dataclass(slots=True, kw_only=True)
class Assembly:
    """Asks the inferior for the rest (names of keys, schemas) and puts the record together."""

    request: TraceRequest
    inferior: Inferior
    tracer: Tracer
    libraries: WatchedLibraries
    witness: Witness
    seen: Seen

    def record(self, outcome: Outcome) -> TraceRecord:
        table = FunctionTable(self.libraries)
        merged = merge(read_ring(self.inferior.ring), self.tracer.log.timeline, function_of=table.number)
        status, detail, result, failure = self._ending(outcome)
        alive = outcome.kind == "marker"
        codes = self.inferior.codes()
        seen, request = self.seen, self.request
        return TraceRecord(
            tdbg=__version__,
            created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            expression=request.expression,
            setup=request.setup,
            script=str(request.script) if request.script else None,
            script_line=request.line,
            cold=bool(seen.ready.get("cold", request.cold)),
            names=tuple(Name(name=name["name"], description=name["description"]) for name in seen.ready["names"]),
            target=self._target(),
            libraries=self._libraries(),
            threads=self._threads(merged),
            functions=located(table.functions, request.source) if request.source else tuple(table.functions),
            codes=tuple(codes),
            calls=merged.calls,
            key_sets=self._key_sets(merged) if alive else {},
            operators=self._operators(table) if alive else (),
            forward_operators=self._forward_operators(table),
            status=status,
            status_detail=detail,
            failure=failure,
            result=result,
            stops=tuple(self.witness.stops(codes, table)),
            notes=tuple(self._notes()),
            seconds={
                "import": round(float(seen.imported.get("seconds", 0.0)), 3),
                "run": round(seen.run_seconds, 3),
                "total": round(time.monotonic() - seen.total_from, 3),
            },
        )

    def _ending(self, outcome: Outcome) -> tuple[Status, str | None, Result | None, Failure | None]:
        if outcome.kind == "crashed":
            name = signal.Signals(outcome.code).name
            return "crashed", f"{name} at {outcome.program_counter:#x}, address {outcome.address:#x}", None, None
        if outcome.kind == "exited":
            return "exited", f"the process ended itself with exit code {outcome.code}", None, None
        if outcome.kind == "killed":
            return "killed", f"the process was killed by {signal.Signals(outcome.code).name}", None, None
        if outcome.kind == "timeout":
            return "timeout", f"still running after {self.request.timeout:g} s", None, None
        try:
            event = self.inferior.receive(timeout=self.request.timeout)
        except InferiorGone as gone:
            raise errors.InferiorCrashed(f"the target interpreter died after the expression ({gone.code}).") from gone
        if event["event"] == "raised":
            failure = Failure(
                stage=event["stage"],
                type=event["type"],
                message=event["message"],
                traceback=event["traceback"],
                line=event.get("line"),
            )
            return "raised", f"{failure.type}: {failure.message}", None, failure
        value = event["result"]
        digests = {name: value.get(name) for name in ("digest", "grad_digest", "names_digest")}
        return "finished", None, Result(text=value["repr"], type=value["type"], **digests), None

    def _target(self) -> TargetFacts:
        hello, imported = self.seen.hello, self.seen.imported
        return TargetFacts(
            executable=hello["executable"],
            python=hello["python"],
            torch=imported["torch_version"],
            git_version=imported.get("git_version"),
            debug=imported.get("debug"),
            cuda=bool(imported.get("cuda")),
        )

    def _libraries(self) -> tuple[Library, ...]:
        return tuple(
            Library(
                path=str(library.path),
                build_id=library.index.build_id,
                symbols=library.index.source,
                functions=len(library.index),
                has_dwarf=library.index.has_dwarf,
            )
            for library in self.libraries.loaded
        )

    def _threads(self, merged: Merged) -> tuple[Thread, ...]:
        pid, ids = self.inferior.pid, dict.fromkeys(call.thread for call in merged.calls)
        return tuple(Thread(id=tid, name=procfs.thread_name(pid, tid), main=tid == pid) for tid in ids)

    def _key_sets(self, merged: Merged) -> dict[str, tuple[str, ...]]:
        raw = sorted({call.keys for call in merged.calls if call.keys is not None})
        if not raw:
            return {}
        answer = self.inferior.ask({"command": "keys", "raw": raw}, "keys")
        return {str(key): tuple(names) for key, names in answer["keys"].items()}

    def _operators(self, table: FunctionTable) -> tuple[Operator, ...]:
        names = {found[0] for function in table.functions if (found := layers.dispatched_operator(function.name))}
        if not names:
            return ()
        answer = self.inferior.ask({"command": "operators", "names": sorted(names)}, "operators")
        return tuple(
            Operator(symbol=symbol, name=facts["name"], schema=facts["schema"], registrations=facts["registrations"])
            for symbol, facts in answer["operators"].items()
            if facts is not None
        )

    def _forward_operators(self, table: FunctionTable) -> dict[str, str]:
        nodes = {node for function in table.functions if (node := layers.autograd_node(function.name))}
        directory = self.seen.hello.get("torch_directory")
        if not nodes or not directory:
            return {}
        known = read_forward_operators(Path(directory))
        return {node: known[node] for node in sorted(nodes) if node in known}

    def _notes(self) -> list[str]:
        notes = list(self.witness.notes)
        if self.tracer.log.cut:
            notes.append(
                f"cut after {self.request.max_stops} function entries; the rest ran unseen (--max-stops raises it)"
            )
        if self.tracer.log.busiest:
            notes.append(
                f"{len(self.tracer.log.busiest)} functions were entered more than {self.request.max_hits} times; "
                "their later calls are not shown"
            )
        if dropped := self.inferior.dropped_events:
            notes.append(f"{dropped} Python calls did not fit into the record")
        notes += missing_symbols(self.libraries)
        return notes


def missing_symbols(libraries: WatchedLibraries) -> list[str]:
    """One line for what the libraries hide, none if they hide nothing."""
    stripped = [library.path.name for library in libraries.loaded if library.index.source != "symtab"]
    if not stripped:
        return []
    return [
        f"stripped: {', '.join(stripped)}. Only exported functions have names there; static ones, such as kernels, are "
        "shown as library+offset. The wheel from PyPI keeps all names."
    ]
