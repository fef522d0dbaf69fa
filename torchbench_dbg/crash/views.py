"""A crash for people: what happened and where, the stack, the cause."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from torchbench_dbg.crash import stacks
from torchbench_dbg.crash.folding import folded
from torchbench_dbg.crash.record import Crash, CrashRecord, ThreadStack
from torchbench_dbg.diagnosis import views as diagnosis
from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.record import Frame
from torchbench_dbg.trace.views.style import highlighted, short_path

_SHOWN_VARIABLES = 8
_MEANINGS = {
    "SIGSEGV": "segmentation fault", "SIGBUS": "bus error", "SIGILL": "illegal instruction",
    "SIGFPE": "arithmetic fault", "SIGABRT": "aborted", "SIGTRAP": "trap", "SIGSYS": "forbidden system call",
    "SIGKILL": "killed",
}  # fmt: skip


def lines(record: CrashRecord, *, all_threads: bool = False) -> Iterator[RenderableType]:
    """Everything, crash by crash; then what is known of an ending that was no crash."""
    for crash in record.crashes:
        yield from crash_lines(crash, all_threads=all_threads)
    if record.diagnoses:
        yield Text("")
        if record.reason == "killed":
            yield Text.assemble(("killed ", "bold red"), ("(SIGKILL)  ", "red"), (" ".join(record.command), "dim"))
            yield Text("")
        yield from diagnosis.lines(record.diagnoses)
    for note in record.notes:
        yield Text.assemble(("note  ", "yellow"), note)


def crash_lines(crash: Crash, *, all_threads: bool = False) -> Iterator[RenderableType]:
    """One process: the cause stands last, where the eye is when the output ends."""
    yield Text("")
    yield from _headline(crash)
    shown = list(crash.threads) if all_threads else _interesting(crash.threads)
    for thread in shown:
        yield Text("")
        yield from _stack(thread)
    if others := len(crash.threads) - len(shown):
        yield Text(f"  {others} other thread{'s' if others > 1 else ''}: --all-threads shows them", style="dim")
    for note in crash.notes:
        yield Text.assemble(("note  ", "yellow"), note)
    if crash.diagnoses or crash.signal != "none":
        yield Text("")
        yield from diagnosis.lines(crash.diagnoses)


def _interesting(threads: Sequence[ThreadStack]) -> list[ThreadStack]:
    """The failing thread; where it runs nothing of Python (a pool's), also the one that does, and waits for it."""
    with_python = [thread for thread in threads if any(frame.kind == "python" for frame in thread.frames)]
    return [*threads[:1], *(with_python[:1] if threads and threads[0] not in with_python else [])]


def _headline(crash: Crash) -> Iterator[RenderableType]:
    process = "" if crash.is_script else "child "
    if crash.signal == "none":
        yield Text.assemble(
            (f"{crash.fault_text}  ", "bold red"), (f"{process}process {crash.pid}: {crash.command}", "dim")
        )
    else:
        yield Text.assemble(
            (f"{_MEANINGS.get(crash.signal, '')} ".lstrip(), "bold red"),
            (f"({crash.signal})  ", "red"),
            (f"{process}process {crash.pid}: {crash.command}", "dim"),
        )
    if crash.exception_type:
        yield from _fact("exception", f"{crash.exception_type}: {crash.exception_text}".removesuffix(": "))
    if crash.message:
        yield from _fact("message", crash.message)
    if crash.fault_text and not crash.exception_type and crash.signal != "none":
        yield from _fact(
            "touched" if crash.address is not None and crash.signal in ("SIGSEGV", "SIGBUS") else "why",
            crash.fault_text,
        )
    if crash.instruction:
        what = crash.instruction_set or "not known to tdbg"
        yield from _fact("bytes", f"{crash.instruction} ({what})")
    if crash.failing_function:
        library = short_path(crash.failing_library)
        yield from _fact("in", f"{shorten(crash.failing_function)}" + (f"  of {library}" if library else ""))


def _fact(label: str, text: str) -> Iterator[RenderableType]:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, width=9)
    table.add_column(overflow="fold")
    table.add_row(label, Text(text))
    yield Padding(table, (0, 0, 0, 2))


def _stack(thread: ThreadStack) -> Iterator[RenderableType]:
    yield Text.assemble(
        f"thread {thread.native_id}", (f"  {thread.name}" if thread.name else ""), ("  most recent call last", "dim")
    )
    if not thread.frames:
        yield Text("    no frame could be read", style="dim")
    library = None
    for frame in folded(thread.frames[::-1]):
        if isinstance(frame, str):
            yield Text(f"  … {frame}", style="dim")
            continue
        yield from _frame_lines(frame, names_library=frame.library != library)
        library = frame.library


def _frame_lines(frame: Frame, *, names_library: bool) -> Iterator[Text]:
    place = f"{short_path(frame.file)}:{frame.line}" if frame.file and frame.line else ""
    if frame.kind == "python":
        yield Text.assemble("  ", (frame.name, "green"), (f"  {place or short_path(frame.file or '')}", "dim"))
        if frame.file and frame.line and (source := linecache.getline(frame.file, frame.line).strip()):
            yield Text("      ").append_text(highlighted(source))
        return
    library = Path(frame.library or "").name if names_library else ""
    style = "" if stacks.is_runtime(frame) or stacks.is_interpreter(frame) else "bold"
    yield Text.assemble("  ", (shorten(frame.name), style), (f"  {place or library}".rstrip(), "dim"))
    if frame.file and frame.line and (source := linecache.getline(frame.file, frame.line).strip()):
        yield Text("      ").append_text(highlighted(source, language="cpp"))
    for variable in (*frame.arguments, *frame.locals)[:_SHOWN_VARIABLES]:
        yield Text.assemble("      ", (variable.name, "cyan"), f" = {variable.value}")
