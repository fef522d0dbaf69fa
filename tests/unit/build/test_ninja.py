"""ninja's progress in a stream of output, and its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg.build.ninja import Edge, Progress, ProgressReader, read_log, seconds_left, slowest

STREAM = b"cmake says\n\x1e1/20/2/0.5\x1f Building a.o\nwarning: odd\n\x1e2/20/2/1.5\x1f Building b.o\n\x1e3/20/1/2.0\x1f [x]"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_records_are_found_wherever_the_stream_is_cut(size: int) -> None:
    reader, text, records = ProgressReader(), b"", []
    for start in range(0, len(STREAM), size):
        piece, found = reader.feed(STREAM[start : start + size])
        text, records = text + piece, records + found
    assert text + reader.rest() == b"cmake says\n Building a.o\nwarning: odd\n Building b.o\n [x]"
    assert [(each.finished, each.total, each.running, each.elapsed) for each in records] == [
        (1, 20, 2, 0.5),
        (2, 20, 2, 1.5),
        (3, 20, 1, 2.0),
    ]


def test_a_control_character_that_begins_no_record_is_output() -> None:
    reader = ProgressReader()
    text, records = reader.feed(b"\x1e" + b"x" * 100)
    assert (text, records) == (b"\x1e" + b"x" * 100, [])
    text, _ = reader.feed(b"a\x1e12")
    assert text + reader.rest() == b"a\x1e12"


def test_the_log_of_ninja(tmp_path: Path) -> None:
    log = tmp_path / ".ninja_log"
    log.write_text(
        "# ninja log v5\n0\t900\t1\ta.o\tff\n900\t2400\t2\tb.o\tfe\n0\t100\t3\ta.o\tfd\nbroken\n1\tx\t3\tc.o\n"
    )
    edges = read_log(log)
    assert edges == {
        "a.o": Edge(output="a.o", seconds=0.1, command="fd"),
        "b.o": Edge(output="b.o", seconds=1.5, command="fe"),
    }
    assert [edge.output for edge in slowest(edges, 1)] == ["b.o"]
    assert read_log(tmp_path / "none") == {}


def test_a_command_with_many_outputs_is_slow_once() -> None:
    edges = {name: Edge(output=name, seconds=9.0, command="codegen") for name in ("a.h", "b.h")}
    edges["c.o"] = Edge(output="c.o", seconds=2.0, command="c")
    assert [edge.seconds for edge in slowest(edges)] == [9.0, 2.0]


def test_the_time_left() -> None:
    history = {"a.o": Edge(output="a.o", seconds=3.0)}
    early = Progress(finished=1, total=21, running=2, elapsed=1.0)
    assert seconds_left(early, {}) is None
    assert seconds_left(early, history) == 30.0
    assert seconds_left(Progress(finished=10, total=30, running=2, elapsed=50.0), history) == 100.0
