"""The runs that are kept."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from torchbench_dbg import runs
from torchbench_dbg.errors import RecordError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TDBG_STATE_DIR", str(tmp_path))
    return tmp_path


def save(title: str) -> runs.Run:
    run = runs.save("trace", json.dumps({"title": title}), title=title, status="finished")
    assert run is not None
    return run


def test_a_run_is_found_by_name_prefix_and_as_the_last(state: Path) -> None:
    run = save("a + b")
    assert json.loads(run.record.read_text()) == {"title": "a + b"}
    for name in (run.identifier, run.identifier[:-2], "last"):
        assert runs.find(name) == run


def test_the_last_of_two_runs_in_one_second(state: Path) -> None:
    first = save("first")
    time.sleep(0.002)
    second = save("second")
    assert runs.find("last") == second
    assert runs.find("last~1") == first
    with pytest.raises(RecordError, match="no run last~2: 2 are kept"):
        runs.find("last~2")


def test_text_that_utf_8_has_no_bytes_for(state: Path) -> None:
    run = save("a + '\udcff'")
    assert json.loads(run.record.read_bytes().decode("utf-8")) == {"title": "a + '\udcff'"}
    assert runs.load_all() == [run]


def test_no_such_run(state: Path) -> None:
    with pytest.raises(RecordError, match="no run last: 0 are kept"):
        runs.find("last")
    for name in ("2026", "", "last~x"):
        with pytest.raises(RecordError, match="neither a file nor a run"):
            runs.find(name)
    save("one")
    save("two")
    with pytest.raises(RecordError, match="beginning of several runs"):
        runs.find("20")


def test_old_runs_go(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KEPT", 3)
    made = {save(str(number)).identifier for number in range(5)}
    kept = {run.identifier for run in runs.load_all()}
    assert len(kept) == 3
    assert kept < made


def test_damaged_runs_are_left_out(state: Path) -> None:
    good = save("good")
    bad = runs.runs_directory() / "20990101-000000-dead"
    bad.mkdir()
    assert runs.load_all() == [good]
    (bad / "command.json").write_text('{"identifier": 3}')
    assert runs.load_all() == [good]


def test_a_state_directory_that_cannot_be_written_costs_a_warning(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "file").touch()
    monkeypatch.setenv("TDBG_STATE_DIR", str(state / "file"))
    assert runs.save("trace", "{}", title="", status="finished") is None
    assert "the run can't be kept" in " ".join(capsys.readouterr().err.split())
