"""pdb and gdb on one process, driven by a script: real torch, both gdbs; and what needs no torch on other Pythons."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import interpreters
from tests.integration.debugger.conftest import require_gdb
from torchbench_dbg.debugger.session import Answer, DebugSession, Program, Stop
from torchbench_dbg.errors import InferiorTimeout, UnknownSymbol, UsageError

SCRIPT = """\
import sys
import torch


def main(factor):
    a = torch.ones(2, 2)
    b = torch.ones(2, 2, requires_grad=True)
    c = a + b
    loss = (c * factor).sum()
    loss.backward()
    print("gradient", b.grad[0, 0].item(), sys.argv[1:])
    sys.exit(3)


main(float(sys.argv[1]))
"""
LOOP = """\
import sys, time

def spin():
    while True:
        time.sleep(0.01)

print("input", repr(sys.stdin.read()) if len(sys.argv) > 1 else "")
spin()
"""


class Story:
    """What the session of a script answered, step by step."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.stops: dict[str, Stop | None] = {}
        self.unknown: UnknownSymbol | None = None

    def tell(self, session: DebugSession) -> None:
        keep = self.answers.__setitem__
        keep("start", session.start())
        with pytest.raises(UsageError):
            session.gdb("bt")
        keep("break", session.pdb("break 8"))
        keep("line", session.pdb("continue"))
        keep("gdb", session.attach_gdb())
        self.stops["line"] = session.last_stop
        keep("back", session.gdb("continue"))
        keep("binding", session.pdb("next"))
        keep("bt", session.gdb("bt"))
        keep("dispatcher", session.gdb("continue"))
        keep("tensor", session.gdb("tdbg-tensor $rsi"))
        keep("next line", session.gdb("continue"))
        try:
            session.attach_gdb(["THPEngine_run_backwar"])
        except UnknownSymbol as error:
            self.unknown = error
        keep("after unknown", session.pdb("next"))
        keep("again", session.attach_gdb(["THPEngine_run_backward"]))
        self.stops["again"] = session.last_stop
        session.gdb("continue")
        keep("engine", session.pdb("next"))
        keep("detach", session.gdb("detach"))
        session.attach_gdb(["at::_ops::item::call", "THPVariable_item"])
        keep("dead gdb", session.gdb("python import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
        keep("end", session.pdb("continue"))


@pytest.fixture(scope="module", params=["wheel", "system"])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("story")
    (folder / "train.py").write_text(SCRIPT)
    told = Story()
    program = Program(
        python=Path(interpreters.require_torch()), script="train.py", arguments=("2.0", "two words"), directory=folder
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TDBG_CACHE_DIR", str(folder / "cache"))
        with DebugSession(program=program, gdb_to_use=require_gdb(request.param)) as session:
            told.tell(session)
    return told


def test_pdb_stops_before_the_first_line(story: Story) -> None:
    assert story.answers["start"].at == "pdb"
    assert story.answers["start"].text.splitlines()[1] == "-> import sys"
    assert story.answers["break"].text.startswith("Breakpoint 1 at ")
    assert story.answers["line"].text.splitlines()[-1] == "-> c = a + b"


def test_gdb_is_at_the_functions_of_the_line(story: Story) -> None:
    assert story.answers["gdb"].at == "gdb"
    stop = story.stops["line"]
    assert stop is not None
    assert (stop.place, stop.text) == ("train.py:8", "c = a + b")
    assert [why for _, why in stop.reasons] == ["a + b"]
    names = {place.name for places, _ in stop.reasons for place in places}
    assert names == {
        "torch::autograd::THPVariable_add",
        "at::_ops::add_Tensor::call",
        "at::_ops::add_Scalar::call",
    }


def test_continue_comes_back_to_pdb_and_next_stops_in_gdb(story: Story) -> None:
    assert story.answers["back"].at == "pdb"
    assert story.answers["binding"].at == "gdb"
    assert "torch::autograd::THPVariable_add" in story.answers["binding"].text
    assert story.answers["dispatcher"].at == "gdb"
    assert "at::_ops::add_Tensor::call" in story.answers["dispatcher"].text
    assert story.answers["next line"].at == "pdb"
    assert story.answers["next line"].text.splitlines()[-1] == "-> loss = (c * factor).sum()"


def test_backtrace_has_names_and_reaches_main(story: Story) -> None:
    lines = story.answers["bt"].text.splitlines()
    assert "torch::autograd::THPVariable_add(" in lines[0]
    assert any("TypeError_to_NotImplemented_<&torch::autograd::THPVariable_add>" in line for line in lines)
    assert any("__libc_start" in line for line in lines)


def test_unknown_name_has_a_suggestion_and_pdb_goes_on(story: Story) -> None:
    assert story.unknown is not None
    assert "THPEngine_run_backward" in (story.unknown.hint or "")
    assert story.answers["after unknown"].at == "pdb"
    assert story.answers["after unknown"].text.splitlines()[-1] == "-> loss.backward()"


def test_gdb_is_asked_for_a_second_time_while_attached(story: Story) -> None:
    assert story.answers["again"].at == "gdb"
    stop = story.stops["again"]
    assert stop is not None
    assert [place.name for places, _ in stop.reasons for place in places] == ["THPEngine_run_backward"]
    assert "Breakpoint" in story.answers["engine"].text
    assert "THPEngine_run_backward" in story.answers["engine"].text


def test_tensors_are_read_without_torchs_symbols(story: Story) -> None:
    facts = dict(re.findall(r"^  (\w+) +(.+)$", story.answers["tensor"].text, re.MULTILINE))
    assert facts["shape"] == "[2, 2]"
    assert facts["dtype"] == "float32"


def test_detach_is_for_good_and_the_script_ends_as_without_debuggers(story: Story) -> None:
    assert story.answers["detach"].at == "pdb"
    assert story.answers["dead gdb"].at == "pdb"
    end = story.answers["end"]  # though the gdb that died had breakpoints in `item`
    assert (end.at, end.exit_code, end.signal) == ("ended", 3, None)
    assert "gradient 2.0 ['2.0', 'two words']" in end.text


def test_no_answer_has_a_prompt_an_echo_or_an_escape(story: Story) -> None:
    for name, answer in story.answers.items():
        assert "(Pdb)" not in answer.text, name
        assert "(gdb)" not in answer.text, name
        assert "\x1b" not in answer.text, name
        assert "tdbg-do" not in answer.text, name


def test_gdb_starts_the_program(tmp_path: Path, gdb: object) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    program = Program(
        python=Path(interpreters.require_torch()), script="train.py", arguments=("4",), directory=tmp_path
    )
    with DebugSession(program=program, gdb_to_use=gdb) as session:  # type: ignore[arg-type]
        answer = session.start_in_gdb(["THPVariable_add"])
        assert answer.at == "gdb"
        assert "Breakpoint" in answer.text
        assert "THPVariable_add" in session.gdb("bt 1").text
        ended = session.gdb("continue")
        assert (ended.at, ended.exit_code) == ("ended", 3)
        assert "gradient 4.0 ['4']" in ended.text


@pytest.fixture(params=["3.10", "3.13"])
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DebugSession]:
    """A program that runs for ever."""
    (tmp_path / "loop.py").write_text(LOOP)
    program = Program(python=Path(interpreters.require(request.param)), script="loop.py", directory=tmp_path)
    with DebugSession(program=program, gdb_to_use=require_gdb("wheel")) as session:
        session.start()
        yield session


def test_time_limit_then_interrupt_in_pdb_and_in_gdb(loop: DebugSession) -> None:
    with pytest.raises(InferiorTimeout):
        loop.pdb("continue", timeout=1)
    assert "Program interrupted" in loop.interrupt().text
    assert loop.attach_gdb([]).at == "gdb"
    assert loop.gdb("continue").at == "pdb"
    with pytest.raises(InferiorTimeout):
        loop.pdb("continue", timeout=1)
    answer = loop.interrupt()  # gdb is attached, and lets pdb's own handler have the signal
    assert answer.at == "pdb"
    assert "Program interrupted" in answer.text
    loop.attach_gdb([])
    assert "SIGINT" in loop.gdb("info signals SIGINT").text
    loop.gdb("break clock_nanosleep")
    loop.gdb("break select")  # where Python 3.10 sleeps
    loop.gdb("continue")
    assert loop.pdb("continue").at == "gdb"
    loop.gdb("delete")
    with pytest.raises(InferiorTimeout):
        loop.gdb("continue", timeout=1)
    answer = loop.interrupt()
    assert answer.at == "gdb"
    assert "SIGINT" in answer.text


def test_long_command_is_no_part_of_the_answer(loop: DebugSession) -> None:
    long = " + ".join(["1"] * 90)  # wider than the terminal: readline breaks the line
    assert loop.pdb(f"p {long}").text == "90"
    loop.attach_gdb([])
    assert loop.gdb(f"print {long}").text == "$1 = 90"


def test_gdb_that_dies_gives_the_floor_back(loop: DebugSession) -> None:
    loop.attach_gdb([])
    answer = loop.gdb("python import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert answer.at == "pdb"
    assert loop.pdb("p 6 * 7").text == "42"
    assert loop.attach_gdb([]).at == "gdb"


def test_close_leaves_no_process(loop: DebugSession) -> None:
    loop.attach_gdb([])
    pid = loop.pid
    assert Path(f"/proc/{pid}").exists()
    loop.close()
    assert not Path(f"/proc/{pid}").exists()
    assert loop.at == "ended"


def test_stdin_of_the_script_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP.replace("\nspin()", ""))
    (tmp_path / "input").write_text("some lines\nof input\n")
    with (tmp_path / "input").open() as file:
        program = Program(
            python=Path(sys.executable), script="loop.py", arguments=("x",), directory=tmp_path, stdin=file.fileno()
        )
        with DebugSession(program=program) as session:
            assert session.start().at == "pdb"
            end = session.pdb("continue")
            assert end.text == "input 'some lines\\nof input\\n'"
            assert end.exit_code == 0
