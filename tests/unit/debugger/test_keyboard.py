"""What is said when the floor changes."""

from __future__ import annotations

from pathlib import Path

from torchbench_dbg.debugger.answers import Floor, Place, Program, Stop
from torchbench_dbg.debugger.keyboard import banner
from torchbench_dbg.debugger.session import DebugSession


def said(at: Floor, stop: Stop | None, *, is_new_stop: bool = True) -> list[str]:
    session = DebugSession(program=Program(python=Path("python"), script="train.py"), at=at, last_stop=stop)
    return list(banner(session, is_new_stop=is_new_stop))


def stop_at(*names: str, asked: bool) -> Stop:
    places = tuple(Place(name=name, address=number) for number, name in enumerate(names))
    return Stop(place="train.py:3", text="c = a + b", reasons=((places, "a + b"),), asked=asked)


def test_functions_of_the_line_are_told_with_their_reason() -> None:
    assert said("gdb", stop_at("one", "two", asked=False))[:2] == [
        "── gdb · process 0 at train.py:3  c = a + b",
        "   stops at one, two  for a + b",
    ]


def test_overloads_have_one_name_and_many_are_counted() -> None:
    assert said("gdb", stop_at("f", "f", "g", "h", "i", "j", asked=True))[1] == "   stops at f, g, h, i and 1 more"


def test_a_line_without_known_functions_says_what_to_do() -> None:
    stop = Stop(place="train.py:3", text="pass", reasons=())
    assert "gdb NAME" in said("gdb", stop)[1]


def test_later_stops_and_pdb_are_one_line() -> None:
    assert said("gdb", stop_at("f", asked=True), is_new_stop=False) == [
        "── gdb · continue: on, and back to pdb · detach: back for good"
    ]
    assert said("pdb", None) == ["── pdb · gdb has let go · gdb: attach it again"]
    assert said("ended", None) == []
