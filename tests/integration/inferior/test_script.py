"""--script and --line: a script is run as `python script.py` would, one line of it is traced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..interpreters import VERSIONS, require
from .host import FAKE, Host, RecordedEvent
from .test_recorder import assert_balanced

SCRIPT = """\
import sys
import helper

def work(number):
    local = number
    for turn in range(3):
        local = helper.double(
            local,
        )
    return local

try:
    total = work(1)
finally:
    print("cleaned up")
print("after")
"""


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    return require(request.param)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "helper.py").write_text("def double(value):\n    return 2 * value\n")
    (folder / "main.py").write_text(SCRIPT)
    return folder / "main.py"


def trace(python: str, script: Path, **config: Any) -> tuple[dict[str, Any], list[RecordedEvent], str]:
    """(last event, records, stdout)."""
    config = {"expression": "", "script": str(script), **config}
    with Host(python=python, config=config, environment=FAKE) as host:
        event = host.run()
        recorded = host.recorded()
        assert event["event"] == "raised" or host.events[2]["cold"] is True
        return event, recorded, host.finish()[1] if event.get("stage") in (None, "expression") else ""


def test_a_script_s_names_are_visible_to_the_expression(python: str, script: Path) -> None:
    event, events, out = trace(
        python,
        script,
        expression="(total, __name__, __file__, sys.argv, sys.path[0], a.shape)",
        argv=["--epochs", "2"],
    )
    expected = (8, "__main__", str(script), [str(script), "--epochs", "2"], str(script.parent))
    assert event["result"]["repr"].startswith(repr(expected)[:-1][:290])
    assert out == "cleaned up\nafter\n"
    assert events[0].name == "<module>"
    assert "double" not in {event.name for event in events}


def test_the_first_execution_of_the_line_is_traced_and_nothing_after_it_runs(python: str, script: Path) -> None:
    event, events, out = trace(python, script, line=7)
    assert_balanced(events)
    assert event["result"]["repr"] == "2"
    assert [event.name for event in events if event.kind == "call"] == ["<module>", "work", "double"]
    assert [(event.name, event.line) for event in events if event.kind == "line"][:2] == [
        ("<module>", 13),
        ("work", 7),
    ]
    assert out == ""


def test_the_line_of_a_module_is_traced_with_all_it_calls(python: str, script: Path) -> None:
    event, events, _ = trace(python, script, line=13)
    assert_balanced(events)
    assert event["result"]["repr"] == "8"
    names = [event.name for event in events if event.kind == "call"]
    assert names == ["<module>", "work", "double", "double", "double"]
    lines = [event.line for event in events if event.kind == "line" and event.name == "work"]
    assert lines[:3] == [5, 6, 7]


def test_a_line_inside_a_statement_of_several_lines_means_the_statement(python: str, script: Path) -> None:
    assert trace(python, script, line=8)[0]["result"]["repr"] == "2"


def test_a_loop_is_traced_as_a_whole(python: str, script: Path) -> None:
    _, events, _ = trace(python, script, line=6)
    assert [event.name for event in events if event.kind == "call"].count("double") == 3


def test_a_line_that_returns_is_traced(python: str, script: Path) -> None:
    event, events, out = trace(python, script, line=10)
    assert event["event"] == "finished"
    assert out == ""
    assert_balanced(events)


def test_a_line_that_raises_is_reported_as_the_expression(python: str, script: Path) -> None:
    script.write_text("try:\n    raise KeyError\nexcept KeyError:\n    len([1])\n    int('x')\n")
    event, events, _ = trace(python, script, line=5)
    assert (event["stage"], event["type"], event["line"]) == ("expression", "ValueError", 5)
    assert_balanced(events)
    # The exception that is being handled around the line is not the line's.
    assert trace(python, script, line=4)[0]["result"]["repr"] == "1"


def test_recursion_through_the_line_is_one_execution(python: str, script: Path) -> None:
    script.write_text("def down(n):\n    if n:\n        down(n - 1)\n        len('x')\ndown(3)\n")
    event, events, _ = trace(python, script, line=3)
    assert event["event"] == "finished"
    assert [event.name for event in events if event.kind == "call"] == [
        "<module>",
        "down",
        "down",
        "down",
        "down",
    ]
    assert [event.name for event in events if event.kind == "c_call"] == ["len", "len"]


def test_a_line_in_another_thread_is_traced_there(python: str, script: Path) -> None:
    script.write_text(
        "import threading\ndef work():\n    len('x')\nthread = threading.Thread(target=work)\nthread.start()\n"
    )
    event, events, _ = trace(python, script, line=3)
    assert event["event"] == "finished"
    assert "len" in [event.name for event in events if event.kind == "c_call"]
    assert_balanced(events)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (3, "has no statement on line 3; the nearest lines with one: 2 and 4"),
        (99, "has no statement on line 99; the nearest lines with one: 16"),
        (14, "has no statement on line 14"),
    ],
)
def test_a_line_without_a_statement_names_its_neighbours(python: str, script: Path, line: int, message: str) -> None:
    event, _, _ = trace(python, script, line=line)
    assert (event["stage"], event["type"]) == ("script", "LineNotReached")
    assert message in event["message"]


def test_a_line_that_is_not_reached_says_so(python: str, script: Path) -> None:
    script.write_text("import sys\nif len(sys.argv) > 5:\n    print('never')\nsys.exit(0)\n")
    event, _, _ = trace(python, script, line=3)
    assert (event["stage"], event["type"]) == ("script", "LineNotReached")
    assert "without reaching line 3" in event["message"]


def test_errors_of_the_script_have_its_stage(python: str, script: Path) -> None:
    script.write_text("def f():\n    1/0\nf()\nlen('x')\n")
    for line in (None, 4):
        event, _, _ = trace(python, script, line=line)
        assert (event["stage"], event["type"], event["line"], event["text"]) == (
            "script",
            "ZeroDivisionError",
            2,
            "1/0",
        )
        assert "inferior" not in event["traceback"]
    script.write_text("def f(:\n")
    assert trace(python, script)[0]["stage"] == "script"
    assert trace(python, script.parent / "missing.py")[0]["type"] == "FileNotFoundError"
    assert trace(python, script.parent / "missing.py", line=1)[0]["type"] == "FileNotFoundError"
    script.write_text("import sys\nsys.exit('stopped')\n")
    assert trace(python, script)[0]["type"] == "SystemExit"
