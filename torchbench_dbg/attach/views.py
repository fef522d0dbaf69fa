"""The stacks of a process for people: the most recent call last, threads with the same stack together."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from torchbench_dbg.attach.record import StacksRecord, Thread
from torchbench_dbg.crash.folding import folded
from torchbench_dbg.trace.names import shorten
from torchbench_dbg.trace.record import Frame
from torchbench_dbg.trace.views.style import highlighted, layer_style, short_path

_SHOWN_NAMES = 6


def lines(record: StacksRecord, *, colours: bool = True) -> Iterator[Text]:
    """The process, each different stack, what is missing. `colours`: source lines highlighted (which takes a tenth of a
    second)."""
    yield Text.assemble((f"process {record.pid}  ", "bold"), record.command)
    yield Text(
        f"{len(record.threads)} thread{'s' * (len(record.threads) > 1)} · it stood still for {record.stopped:.1f} ms",
        style="dim",
    )
    for threads in _alike(record.threads):
        yield Text("")
        yield _title(threads, record.pid)
        yield from _frames(threads[0], colours)
    for note in record.notes:
        yield Text.assemble(("note     ", "yellow"), note)


def _alike(threads: tuple[Thread, ...]) -> list[list[Thread]]:
    """Threads with the same frames together, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Thread]] = {}
    for thread in threads:
        key = tuple((frame.name, frame.library, frame.file, frame.line) for frame in thread.frames)
        groups.setdefault((key, thread.state), []).append(thread)
    return list(groups.values())


def _title(threads: list[Thread], pid: int) -> Text:
    first = threads[0]
    state = f"  {first.state}" if first.state else ""
    if len(threads) == 1:
        role = "main thread" if first.native_id == pid else "thread"
        return Text.assemble((f"{role} {first.native_id}", "bold"), f"  {first.name}", (state, "yellow"))
    numbers = ", ".join(str(each.native_id) for each in threads[:_SHOWN_NAMES])
    more = ", …" if len(threads) > _SHOWN_NAMES else ""
    return Text.assemble(
        (f"{len(threads)} threads", "bold"), f"  {first.name}", (state, "yellow"), (f"  {numbers}{more}", "dim")
    )


def _frames(thread: Thread, colours: bool) -> Iterator[Text]:
    if not thread.frames:
        yield Text("  no frame could be read", style="dim")
    layers = {id(frame): layer for frame, layer in zip(thread.frames, thread.layers, strict=True)}
    library: str | None = None
    for frame in folded(thread.frames[::-1]):
        if isinstance(frame, str):
            yield Text(f"  … {frame}", style="dim")
            continue
        yield from _frame(frame, layers[id(frame)], names_library=frame.library != library, colours=colours)
        library = frame.library


def _frame(frame: Frame, layer: str, *, names_library: bool, colours: bool) -> Iterator[Text]:
    if frame.kind == "python":
        place = f"{short_path(frame.file or '')}:{frame.line}" if frame.line else short_path(frame.file or "")
        yield Text.assemble("  ", (frame.name, "green"), (f"  {place}", "dim"))
        if frame.file and frame.line and (source := linecache.getline(frame.file, frame.line).strip()):
            yield Text("      ").append_text(highlighted(source) if colours else Text(source))
        return
    text = Text.assemble("  ", (shorten(frame.name), layer_style(layer) if layer else ""))
    if layer:
        text.append(f"  {layer}", style="dim")
    elif names_library and frame.library:
        text.append(f"  {Path(frame.library).name}", style="dim")
    yield text
