"""The recorder of Python events, in real interpreters; a stand-in for torch, as no wheel exists for all
of them.
"""

from __future__ import annotations

import collections

import pytest

from ..interpreters import VERSIONS, require
from .host import FAKE, Host, RecordedEvent

MIXTURE = """
import functools, threading
def numbers():
    yield 1
    yield 2
class Box:
    @property
    def size(self):
        return len("x")
    def all(self):
        return list(numbers())
def fails():
    raise KeyError("k")
def through_c():
    return sorted([2, 1], key=lambda value: fails())
for function in (fails, through_c):
    try:
        function()
    except KeyError:
        pass
box = Box(); box.size; box.all()
first = numbers(); next(first)
try:
    first.throw(ValueError("thrown in"))
except ValueError:
    pass
second = numbers(); next(second); second.close()
third = numbers(); next(third); del third
thread = threading.Thread(target=box.all); thread.start(); thread.join()
print(*[], **{"end": ""})
functools.reduce(lambda left, right: max(left, right), [1, 2, 3])
"""


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    return require(request.param)


def record(python: str, expression: str, **config: object) -> list[RecordedEvent]:
    """All events of one run that ends well."""
    with Host(python=python, config={"expression": expression, "cold": True, **config}, environment=FAKE) as host:
        event = host.run()
        assert event["event"] == "finished", event
        assert host.counters()[1] == 0
        assert host.finish()[0] == 0
        return host.recorded()


def assert_balanced(events: list[RecordedEvent]) -> None:
    """Each call has exactly one return, properly nested, on each thread."""
    opened: dict[int, list[tuple[str, int]]] = collections.defaultdict(list)
    for event in events:
        if event.kind in ("call", "c_call"):
            opened[event.thread].append((event.kind, event.identity))
        elif event.kind != "line":
            assert opened[event.thread].pop() == (event.kind.replace("return", "call"), event.identity)
    assert not any(opened.values())


def names_of(events: list[RecordedEvent], kind: str) -> list[str]:
    return [event.name for event in events if event.kind == kind]


def test_calls_and_returns_pair_with_generators_exceptions_and_threads(python: str) -> None:
    events = record(python, MIXTURE)
    assert_balanced(events)
    assert len({event.thread for event in events}) == 2
    assert (events[0].kind, events[0].name) == ("call", "<module>")
    assert (events[-1].kind, events[-1].name) == ("return", "<module>")


def test_methods_have_qualified_names(python: str) -> None:
    setup = (
        "class Box:\n    @property\n    def size(self): return 1\n    @classmethod\n    def make(cls): return cls()\n"
    )
    assert names_of(record(python, "Box.make().size", setup=setup), "call") == [
        "<module>",
        "Box.make",
        "Box.size",
    ]


def test_lines_are_recorded_for_the_expression_and_its_functions_only(python: str) -> None:
    setup = "def outside():\n    one = 1\n    return one\n"
    events = record(python, "def inside():\n    return outside()\ninside()\na + b", setup=setup)
    lines = [(event.name, event.line) for event in events if event.kind == "line"]
    assert lines == [("<module>", 1), ("<module>", 3), ("inside", 2), ("<module>", 4)]


def test_c_functions_are_named_and_carry_the_caller_s_line(python: str) -> None:
    events = record(python, "import math\nmath.sqrt(2)\n[3].append(4)\nlen('x')\ndict.fromkeys('a')\n'a'.join([])")
    calls = [(event.name, event.line) for event in events if event.kind == "c_call"][-5:]
    assert calls == [("math.sqrt", 2), ("list.append", 3), ("len", 4), ("dict.fromkeys", 5), ("str.join", 6)]


def test_frames_of_the_inferior_never_appear(python: str) -> None:
    with Host(python=python, config={"expression": MIXTURE}, environment=FAKE) as host:
        host.run()
        assert not [record for record in host.name_records().values() if "inferior" in (record["file"] or "")]


def test_name_records_have_file_line_and_module(python: str) -> None:
    with Host(python=python, config={"expression": "import json\njson.dumps([1])"}, environment=FAKE) as host:
        host.run()
        records = {record["name"]: record for record in host.name_records().values()}
        assert records["dumps"]["file"].endswith("json/__init__.py")
        assert (records["dumps"]["module"], records["dumps"]["c"]) == ("json", False)
        assert (records["<module>"]["file"], records["<module>"]["line"]) == ("<expr>", 1)
        assert (records["isinstance"]["c"], records["isinstance"]["file"]) == (True, None)
        assert 0 not in host.name_records()


def test_threads_have_their_native_ids(python: str) -> None:
    expression = (
        "import threading\nids = [threading.get_native_id()]\n"
        "def work(): ids.append(threading.get_native_id())\n"
        "for _ in range(3):\n    thread = threading.Thread(target=work); thread.start(); thread.join()\nids"
    )
    with Host(python=python, config={"expression": expression, "cold": True}, environment=FAKE) as host:
        ids = [int(word) for word in host.run()["result"]["repr"].strip("[]").split(",")]
        events = host.recorded()
        assert [event.thread for event in events if (event.kind, event.name) == ("call", "work")] == ids[1:]
        assert events[0].thread == ids[0] == host.events[0]["pid"]


def test_returns_of_calls_open_before_the_start_are_not_recorded(python: str) -> None:
    setup = (
        "import threading\ndef numbers():\n    yield 1\n    yield 2\nopened = numbers(); next(opened)\n"
        "go, done = threading.Event(), threading.Event()\n"
        "def work():\n    go.wait()\n    len('x')\n    done.set()\nthreading.Thread(target=work).start()\n"
    )
    events = record(python, "list(opened); go.set(); done.wait()", setup=setup)
    assert_balanced(events)
    assert names_of(events, "call").count("numbers") == 2


def test_calls_open_at_the_end_are_closed(python: str) -> None:
    expression = (
        "import threading\nstarted, never = threading.Event(), threading.Event()\n"
        "def work():\n    started.set()\n    never.wait()\n"
        "threading.Thread(target=work, daemon=True).start(); started.wait()"
    )
    assert_balanced(record(python, expression))


def test_an_exception_that_ends_the_expression_closes_its_calls(python: str) -> None:
    with Host(
        python=python,
        config={"expression": "def f(): 1/0\nsorted([1], key=lambda value: f())"},
        environment=FAKE,
    ) as host:
        assert host.run()["event"] == "raised"
        assert_balanced(host.recorded())


def test_many_threads_leave_no_hole_and_no_unpaired_call(python: str) -> None:
    expression = (
        "import threading, sys\nsys.setswitchinterval(1e-6)\n"
        "def work():\n    for number in range(300): str(number).strip()\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()"
    )
    events = record(python, expression)
    assert_balanced(events)
    assert names_of(events, "c_call").count("str.strip") == 1800


def test_a_full_ring_counts_what_it_drops(python: str) -> None:
    config = {"expression": "for _ in range(1000): len('x')", "cold": True}
    with Host(python=python, config=config, environment=FAKE, ring_bytes=64 + 16 * 100) as host:
        assert host.run()["event"] == "finished"
        written, dropped = host.counters()
        # The call, its line, 1000 calls with their returns, the return; each turn of the loop is a new line.
        assert written == 100
        assert dropped >= 1903
        assert len(host.recorded()) == 100


def test_a_forked_child_records_nothing_and_does_not_converse(python: str) -> None:
    expression = (
        "import os\nchild = os.fork()\n"
        "if child: status = os.waitpid(child, 0)[1]\n"
        "else: status = [str(number) for number in range(100)]\nstatus"
    )
    with Host(python=python, config={"expression": expression, "cold": True}, environment=FAKE) as host:
        assert host.run()["result"]["repr"] == "0"
        events = host.recorded()
        assert_balanced(events)
        assert {event.thread for event in events} == {host.events[0]["pid"]}
        assert host.finish()[0] == 0
        assert [event["event"] for event in host.events] == ["hello", "imported", "ready", "finished"]


def test_events_up_to_a_crash_can_be_read(python: str) -> None:
    config = {"expression": "import ctypes\nctypes.string_at(0)", "cold": True}
    with Host(python=python, config=config, environment=FAKE) as host:
        host.until("ready")
        assert host.receive() is None
        assert host.process.wait(timeout=30) == -11
        assert "string_at" in host.recorded()[-1].name or host.recorded()[-2].name == "string_at"


def test_recording_keeps_no_object_alive(python: str) -> None:
    expression = (
        "import weakref\nclass Names(list): pass\nheld = Names(); held.append(1); held.sort()\n"
        "seen = weakref.ref(held); del held\nseen() is None"
    )
    with Host(python=python, config={"expression": expression, "cold": True}, environment=FAKE) as host:
        assert host.run()["result"]["repr"] == "True"


def test_a_user_s_type_with_hostile_attributes_is_left_alone(python: str) -> None:
    setup = (
        "asked = []\nclass Meta(type):\n    def __getattribute__(cls, name):\n"
        "        asked.append(name); return super().__getattribute__(name)\n"
        "class Hostile(dict, metaclass=Meta):\n"
        "    __class__ = property(lambda self: asked.append('__class__'))\n"
        "    def __hash__(self): asked.append('hash'); return 1\n"
        "hostile = Hostile()\n"
    )
    with Host(
        python=python,
        config={"expression": "asked.clear(); hostile.keys(); list(asked)", "setup": setup, "cold": True},
        environment=FAKE,
    ) as host:
        assert host.run()["result"]["repr"] == "[]"
        assert "dict.keys" in names_of(host.recorded(), "c_call")


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_without_a_free_monitoring_tool_the_profile_hook_records(version: str) -> None:
    setup = "import sys\nfor number in range(6): sys.monitoring.use_tool_id(number, 'other')\n"
    events = record(require(version), MIXTURE, setup=setup)
    assert_balanced(events)
    assert "Box.all" in names_of(events, "call")
    assert [event.line for event in events if event.kind == "line"][:3] == [2, 3, 6]


def test_a_plain_run_records_nothing(python: str) -> None:
    assert record(python, "len('x')", plain=True) == []
