"""Which gdb is chosen, and what is said of those that can't be used. No gdb is started."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from torchbench_dbg import process
from torchbench_dbg.debugger import gdb
from torchbench_dbg.errors import DebuggerError, TargetError

ANSWERS = {
    "good": (0, "tdbg 13.1 (3, 11)\n", ""),
    "fedora": (0, "tdbg Fedora Linux 15.2-3.fc41 (3, 13)\n", ""),
    "old": (0, "tdbg 11.2 (3, 9)\n", ""),
    "no-python": (1, "", "Python scripting is not supported in this copy of GDB.\n"),
    "no-libpython": (127, "", "gdb: error while loading shared libraries: libpython3.11.so.1.0: cannot open\n"),
    "silent": (0, "", ""),
    "broken": (3, "", ""),
}


class World:
    """Programs that answer as their names in ANSWERS say."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.environment = folder, [], {}

    def program(self, name: str) -> Path:
        path = self.folder / name
        path.write_text("#!/bin/false\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run(self, argv: list[str], **options: Any) -> process.Completed:
        name = Path(argv[0]).name
        self.asked.append(name)
        self.environment = options["env"]
        if name == "gone":
            raise TargetError("gone can't be started: Exec format error")
        code, stdout, stderr = ANSWERS[name]
        return process.Completed(returncode=code, stdout=stdout, stderr=stderr)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setenv("TDBG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(process, "run", world.run)
    return world


def candidates(monkeypatch: pytest.MonkeyPatch, *found: tuple[Path, str]) -> None:
    monkeypatch.setattr(gdb, "_candidates", lambda: iter(found))


def test_explicit(world: World) -> None:
    path = world.program("good")
    assert gdb.find_gdb(str(path)) == gdb.Gdb(path=path, version=(13, 1), origin="--gdb")


def test_versions_of_distributions(world: World) -> None:
    assert gdb.find_gdb(str(world.program("fedora"))).version == (15, 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("old", "is gdb 11.2; 12 or newer is needed"),
        ("no-python", "has no Python in it"),
        ("no-libpython", "does not answer: .*libpython3.11.so.1.0: cannot open"),
        ("silent", "it is no gdb"),
        ("broken", "exit code 3"),
        ("gone", "Exec format error"),
    ],
)
def test_unusable_ones_say_why(world: World, name: str, said: str) -> None:
    with pytest.raises(DebuggerError, match=said) as caught:
        gdb.find_gdb(str(world.program(name)))
    assert "apt-get install gdb" in (caught.value.hint or "")


def test_explicit_and_not_there(world: World) -> None:
    with pytest.raises(DebuggerError, match="there is no gdb /nowhere/gdb: it does not exist"):
        gdb.find_gdb("/nowhere/gdb")
    (world.folder / "plain").write_text("")
    with pytest.raises(DebuggerError, match="it can't be executed"):
        gdb.find_gdb(str(world.folder / "plain"))


def test_the_next_one_is_taken_where_the_wheels_does_not_start(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    good = world.program("good")
    candidates(monkeypatch, (world.program("no-libpython"), "gdb-for-pwndbg"), (good, "PATH"))
    assert gdb.find_gdb(None) == gdb.Gdb(path=good, version=(13, 1), origin="PATH")


def test_all_reasons_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates(monkeypatch, (world.program("no-libpython"), "gdb-for-pwndbg"), (world.program("old"), "PATH"))
    with pytest.raises(DebuggerError, match=r"no usable gdb: .*libpython3\.11.*; .*old is gdb 11\.2") as caught:
        gdb.find_gdb(None)
    assert "apt-get install gdb" in (caught.value.hint or "")
    candidates(monkeypatch)
    with pytest.raises(DebuggerError, match="no usable gdb: none is installed"):
        gdb.find_gdb(None)


def test_the_answer_is_remembered_until_the_file_changes(world: World) -> None:
    path = world.program("good")
    for _ in range(3):
        gdb.find_gdb(str(path))
    assert world.asked == ["good"]
    path.write_text("#!/bin/false, but another one\n")
    gdb.find_gdb(str(path))
    assert world.asked == ["good", "good"]


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"KEY": null}', '{"KEY": [1]}', '{"KEY": ["a", "b"]}'])
def test_a_damaged_memory_is_made_anew(world: World, content: str) -> None:
    path = world.program("good")
    gdb.find_gdb(str(path))
    memory = world.folder / "cache" / "gdb.json"
    (key,) = json.loads(memory.read_text())
    memory.write_text(content.replace("KEY", key))
    assert gdb.find_gdb(str(path)).version == (13, 1)
    assert json.loads(memory.read_text()) == {key: [13, 1]}


def test_a_memory_that_cannot_be_written(world: World) -> None:
    (world.folder / "cache").write_text("in the way")
    assert gdb.find_gdb(str(world.program("good"))).version == (13, 1)


def test_gdb_gets_nothing_that_is_meant_for_another_python(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONHOME", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "/somewhere")
    gdb.find_gdb(str(world.program("good")))
    assert not {"PYTHONHOME", "PYTHONPATH", "LD_PRELOAD"} & set(world.environment)
    assert world.environment["LC_ALL"] == "C.UTF-8"
