"""The record and its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from torchbench_dbg import records
from torchbench_dbg.errors import RecordError
from torchbench_dbg.trace import schema
from torchbench_dbg.trace.record import Operator, from_json

from .samples import make_record

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "reference"


def test_json_and_back_is_the_same_record() -> None:
    record = make_record()
    assert from_json(json.loads(json.dumps(record.to_json()))) == record


def test_the_json_follows_its_schema() -> None:
    validator = jsonschema.Draft202012Validator(schema.json_schema())
    data = json.loads(json.dumps(make_record().to_json()))
    validator.validate(data)
    for damage in ({"extra": 1}, {"schema": "tdbg.trace/0"}, {"calls": [{"parent": 0}]}):
        assert not validator.is_valid({**data, **damage})


def test_the_documented_schema_is_the_one_in_force() -> None:
    """`make docs` makes the files anew."""
    for name, text in schema.files().items():
        assert (DOCUMENTATION / name).read_text(encoding="utf-8") == text


def damage_parent(data: dict[str, Any]) -> None:
    data["calls"][1]["parent"] = 2


def damage_reference(data: dict[str, Any]) -> None:
    data["calls"][2]["ref"] = 9


def damage_thread(data: dict[str, Any]) -> None:
    data["calls"][1]["thread"] = 2


def damage_stop(data: dict[str, Any]) -> None:
    data["stops"][0]["call"] = 3


def damage_kind(data: dict[str, Any]) -> None:
    data["calls"][0]["kind"] = "perl"


def damage_type(data: dict[str, Any]) -> None:
    data["expression"] = 7


def damage_missing(data: dict[str, Any]) -> None:
    del data["target"]["torch"]


def damage_unknown(data: dict[str, Any]) -> None:
    data["names"][0]["colour"] = "red"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damage_parent, "call 1 refers to what is not there"),
        (damage_reference, "call 2 refers to what is not there"),
        (damage_thread, "call 1 refers to what is not there"),
        (damage_stop, "stop 0 refers to what is not there"),
        (damage_kind, "'perl' is none of python, c, native"),
        (damage_type, "TraceRecord.expression: str is expected, int found"),
        (damage_missing, "torch"),
        (damage_unknown, "Name has no colour"),
    ],
)
def test_damage_is_named(damage: Callable[[dict[str, Any]], None], said: str) -> None:
    data = json.loads(json.dumps(make_record().to_json()))
    damage(data)
    with pytest.raises(RecordError) as caught:
        from_json(data)
    assert said in caught.value.message


@pytest.mark.parametrize("text", ["", "[", "3", '{"schema": "tdbg.doctor/1"}', "[" * 100_000])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(RecordError):
        from_json(records.read(tmp_path / "trace.json"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="can't be read: No such file"):
        records.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("registrations", "key", "place"),
    [
        ({"CPU": "R:1", "Autograd": "V:2"}, "CPU", "R:1"),
        ({"CPU": "R:1", "Autograd": "V:2"}, "AutogradCPU", "V:2"),
        ({"CompositeImplicitAutograd": "C:3", "Autograd": "V:2"}, "AutogradCPU", "C:3"),
        ({"CPU": "R:1", "CompositeImplicitAutograd": "C:3", "Autograd": "V:2"}, "AutogradCPU", "V:2"),
        ({"CompositeExplicitAutograd": "E:4"}, "CPU", "E:4"),
        ({"CPU": "R:1"}, "CUDA", None),
    ],
)
def test_registrations_fall_back_to_alias_keys(registrations: dict[str, str], key: str, place: str | None) -> None:
    operator = Operator(symbol="add", name="aten::add", schema=None, registrations=registrations)
    assert operator.registered_at(key) == place
