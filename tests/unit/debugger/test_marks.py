"""Text and marks, however the terminal's output is cut into pieces."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from torchbench_dbg.debugger.marks import Mark, MarkReader, plain

TOKEN = "0123abcd"
PRINTED = (
    b"-> a + b\r\n\x01\x1b]7774;0123abcd;prompt\x07\x02(Pdb) next\r\n\x1b]7774;0123abcd;run\x07one\x1b]0;title\x07\r\n"
    b'\x1b]7774;ffff;prompt\x07\x1b]7774;0123abcd;gdb {"place": "a;b"}\x07\x1b'
)
EXPECTED = [
    b"-> a + b\r\n",
    Mark(word="prompt", rest=""),
    b"(Pdb) next\r\n",
    Mark(word="run", rest=""),
    b"one\x1b]0;title\x07\r\n\x1b]7774;ffff;prompt\x07",
    Mark(word="gdb", rest='{"place": "a;b"}'),
]


def joined(items: list[bytes | Mark]) -> list[bytes | Mark]:
    found: list[bytes | Mark] = []
    for item in items:
        if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += item
        else:
            found.append(item)
    return found


@given(st.lists(st.integers(0, len(PRINTED)), max_size=12))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    reader, borders = MarkReader(TOKEN), [0, *sorted(cuts), len(PRINTED)]
    items = [item for low, high in itertools.pairwise(borders) for item in reader.feed(PRINTED[low:high])]
    assert joined(items) == EXPECTED  # the ESC at the end may be the beginning of a mark, and is kept back


def test_what_is_kept_back_comes_when_it_is_no_mark() -> None:
    reader = MarkReader(TOKEN)
    assert reader.feed(b"x\x1b") == [b"x"]
    assert reader.feed(b"[0m") == [b"\x1b[0m"]


def test_plain_is_what_a_terminal_shows() -> None:
    assert plain(b"\x1b[?2004h\x1b[32;49mgreen\x1b[m\r\n10 %\r100 %\r\nend") == "green\n100 %\nend"
    assert plain("é".encode()[:1]) == "\ufffd"
