"""Long stacks made short: what a recursion repeats is shown once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchbench_dbg.trace.record import Frame

_ENDS = 12  # frames that are shown at each end of a long stack
_LONG = 40
_LONGEST_CYCLE = 8


def folded(frames: Sequence[Frame]) -> Iterator[Frame | str]:
    """The frames, and instead of what a recursion repeats a line that says so."""
    place, shown = 0, 0
    while place < len(frames):
        length, times = _repetition(frames, place)
        if times > 2:
            yield from frames[place : place + length]
            what = "this frame" if length == 1 else f"these {length} frames"
            yield f"{what}, {times} times"
            place += length * times
            continue
        if len(frames) > _LONG and shown >= _ENDS and place < len(frames) - _ENDS:
            yield f"{len(frames) - _ENDS - place} frames"
            place = len(frames) - _ENDS
        yield frames[place]
        place, shown = place + 1, shown + 1


def _repetition(frames: Sequence[Frame], start: int) -> tuple[int, int]:
    """(length, times) of the cycle that begins there, (1, 1) if there is none."""
    best = (1, 1)
    for length in range(1, _LONGEST_CYCLE + 1):
        cycle = [_place(frame) for frame in frames[start : start + length]]
        times = 1
        while [_place(frame) for frame in frames[start + times * length : start + (times + 1) * length]] == cycle:
            times += 1
        if times > 2 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def _place(frame: Frame) -> tuple[str, str | None, int | None]:
    return frame.name, frame.file or frame.library, frame.line
