"""The record of one trace: what every view is drawn from, and its JSON form (`tdbg.trace/1`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torchbench_dbg import records
from torchbench_dbg.errors import RecordError

SCHEMA = "tdbg.trace/1"

CallKind = Literal["python", "c", "native"]
Status = Literal["finished", "raised", "crashed", "exited", "killed", "timeout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name that the expression could use."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """The interpreter and the torch that ran the expression."""

    executable: str
    python: str
    torch: str
    git_version: str | None
    debug: bool | None
    cuda: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library whose functions were watched. `symbols` says where their names are from."""

    path: str
    build_id: str | None
    symbols: Literal["symtab", "dynsym", "eh_frame"]
    functions: int
    has_dwarf: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A C++ function that was entered.

    `offset` is its link-time address in the library; `name` is demangled and whole; `symbol` is empty for an
    unnamed function of a stripped library, and `after` then names its nearest named neighbour.
    """

    library: int
    offset: int
    symbol: str
    name: str
    layer: str
    file: str | None = None
    line: int | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A Python function, or a C function seen from Python (`c`)."""

    name: str
    file: str | None
    line: int | None
    c: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the merged tree, in order of time.

    `parent` is the number of the calling call (-1: none), always lower than the call's own. `ref` is the number
    of a `Code` (python, c) or of a `Function` (native). `line` is the line of the calling Python frame, 0 if
    unknown. `keys` is the raw DispatchKeySet that a dispatcher function was given.
    """

    parent: int
    kind: CallKind
    ref: int
    thread: int
    line: int = 0
    keys: int | None = None
    tail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread that entered a watched function or called a Python function. `id` is the kernel's."""

    id: int
    name: str
    main: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What the dispatcher knows of an operator: its schema and where each key's kernel was registered.

    `symbol` is its name under at::_ops (`add_Tensor`), `name` the schema's (`aten::add.Tensor`).
    """

    symbol: str
    name: str
    schema: str | None
    registrations: dict[str, str]

    def registered_at(self, key: str) -> str | None:
        """`file:line` of the kernel for a key: its own, else that of the alias keys that stand in for it.

        The order is that of OperatorEntry::computeDispatchTableEntryWithDebug.
        """
        aliases = ["CompositeExplicitAutograd", "CompositeImplicitAutograd"]
        if key.startswith("Autograd"):
            # A composite kernel serves autograd too, unless the backend has a kernel of its own.
            has_backend = {key.removeprefix("Autograd"), "CompositeExplicitAutograd"} & set(self.registrations)
            aliases = ["Autograd", "CompositeImplicitAutograd"][:: 1 if has_backend else -1]
        return next((self.registrations[name] for name in (key, *aliases) if name in self.registrations), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An argument or a local, as gdb prints it."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a backtrace, innermost first. `kind` python frames stand between the C++ frames."""

    kind: Literal["python", "native"]
    name: str
    library: str | None = None
    address: int = 0
    file: str | None = None
    line: int | None = None
    inline: bool = False
    arguments: tuple[Variable, ...] = ()
    locals: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The state of a thread at a --break, a crash or a timeout."""

    reason: Literal["break", "crash", "timeout", "exit"]
    title: str
    thread: int
    frames: tuple[Frame, ...]
    call: int = -1  # number of the call that was hit
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception that the expression raised."""

    stage: str
    type: str
    message: str
    traceback: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The value of the expression.

    Digests are SHA-256 of tensors' bytes, dtypes and shapes: of the value, of the gradients of all names, and of
    the names themselves. They are the same in a run without tracing.
    """

    text: str
    type: str
    digest: str | None
    grad_digest: str | None = None
    names_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """All that one `tdbg trace` saw."""

    tdbg: str
    created: str
    expression: str
    setup: str | None
    script: str | None
    script_line: int | None
    cold: bool
    names: tuple[Name, ...]
    target: TargetFacts
    libraries: tuple[Library, ...]
    threads: tuple[Thread, ...]
    functions: tuple[Function, ...]
    codes: tuple[Code, ...]
    calls: tuple[Call, ...]
    key_sets: dict[str, tuple[str, ...]]  # raw set -> names, the winning key last
    operators: tuple[Operator, ...]
    forward_operators: dict[str, str]  # autograd node -> the operator that makes it
    status: Status
    status_detail: str | None
    failure: Failure | None
    result: Result | None
    stops: tuple[Stop, ...]
    notes: tuple[str, ...]  # what is missing, cut or uncertain, one line each
    seconds: dict[str, float]  # import: of torch; run: of the traced expression; total: of tdbg

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self, SCHEMA)

    def key_names(self, raw: int | None) -> tuple[str, ...]:
        """Names of a raw key set, the winning key last; () if unknown."""
        return self.key_sets.get(str(raw), ()) if raw is not None else ()


def from_json(data: Any, *, source: str = "the record") -> TraceRecord:
    """The record of a JSON object; RecordError where it does not follow the schema."""
    record = records.from_json(TraceRecord, SCHEMA, data, source=source, again="tdbg trace EXPR -o FILE.json")
    _check_references(record, source)
    return record


def _check_references(record: TraceRecord, source: str) -> None:
    for number, function in enumerate(record.functions):
        if not 0 <= function.library < len(record.libraries):
            raise RecordError(f"{source} does not follow {SCHEMA}: function {number} is in a library that is not there")
    limits = {"native": len(record.functions), "python": len(record.codes), "c": len(record.codes)}
    threads = {thread.id for thread in record.threads}
    for number, call in enumerate(record.calls):
        known = -1 <= call.parent < number and 0 <= call.ref < limits.get(call.kind, 0) and call.thread in threads
        if not known:
            raise RecordError(f"{source} does not follow {SCHEMA}: call {number} refers to what is not there")
    for number, stop in enumerate(record.stops):
        if not -1 <= stop.call < len(record.calls):
            raise RecordError(f"{source} does not follow {SCHEMA}: stop {number} refers to what is not there")
