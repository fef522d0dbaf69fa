"""What a build remembers of its steps."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from torchbench_dbg.build.lock import locked
from torchbench_dbg.build.state import BuildState, fingerprint, identifier_of
from torchbench_dbg.errors import BuildError


def test_a_step_is_done_for_what_it_depended_on(tmp_path: Path) -> None:
    BuildState(tmp_path).mark("configure", fingerprint(["DEBUG=1"]), 2.5)
    state = BuildState(tmp_path)
    assert state.is_done("configure", fingerprint(["DEBUG=1"]))
    assert not state.is_done("configure", fingerprint(["DEBUG=0"]))
    assert state.seconds("configure") == 2.5
    state.forget("configure", "compile")
    assert not BuildState(tmp_path).is_done("configure", fingerprint(["DEBUG=1"]))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"configure": 3}', '{"configure": {"odd": 1}}'])
def test_a_damaged_state_forgets(tmp_path: Path, text: str) -> None:
    (tmp_path / "steps.json").write_text(text)
    assert BuildState(tmp_path).seconds("configure") == 0.0


def test_builds_of_two_trees_have_two_names() -> None:
    names = {identifier_of(Path(path), "debug") for path in ("/a/pytorch", "/b/pytorch", "/b/pytörch x", "/")}
    assert len(names) == 4
    assert all("/" not in name and " " not in name for name in names)


def test_a_second_build_is_told_who_builds(tmp_path: Path) -> None:
    told: list[str] = []

    def second() -> None:
        try:
            with locked(tmp_path):
                told.append("let in")
        except BuildError as error:
            told.append(error.message)

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(told) == 1
    assert "is being built already, by process" in told[0]
    second()
    assert told[1] == "let in"
