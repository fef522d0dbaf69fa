"""The JSON Schema: what it refuses, and how a field is described. test_record.py has the documented files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from torchbench_dbg.trace import schema

from .samples import make_record


def data() -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(make_record().to_json()))
    return decoded


def test_the_schema_is_itself_a_schema() -> None:
    assert jsonschema.Draft202012Validator.check_schema(schema.json_schema()) is None


def error_of(damaged: dict[str, Any]) -> str:
    (error,) = jsonschema.Draft202012Validator(schema.json_schema()).iter_errors(damaged)
    return str(error.message)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda record: record.update(extra=1), "'extra' was unexpected"),
        (lambda record: record["target"].update(extra=1), "'extra' was unexpected"),
        (lambda record: record["stops"][0]["frames"][0]["arguments"][0].update(extra=1), "'extra' was unexpected"),
        (lambda record: record.pop("notes"), "'notes' is a required property"),
        (lambda record: record["calls"][1].pop("ref"), "'ref' is a required property"),
        (lambda record: record.update(status="lost"), "'lost' is not one of"),
        (lambda record: record["key_sets"].update({"1": "CPU"}), "'CPU' is not of type 'array'"),
        (lambda record: record.update(schema="tdbg.trace/2"), "'tdbg.trace/1' was expected"),
    ],
)
def test_damage_is_refused(damage: Callable[[dict[str, Any]], object], said: str) -> None:
    record = data()
    damage(record)
    assert said in error_of(record)


def test_fields_with_a_default_are_not_required() -> None:
    call = schema.json_schema()["$defs"]["Call"]
    assert call["required"] == ["parent", "kind", "ref", "thread"]
    assert call["properties"]["keys"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert set(call["properties"]) - set(call["required"]) == {"line", "keys", "tail"}


def test_fields_that_have_their_default_are_left_out() -> None:
    assert data()["calls"] == [
        {"parent": -1, "kind": "python", "ref": 1, "thread": 1},
        {"parent": 0, "kind": "native", "ref": 0, "thread": 1, "line": 1, "keys": 65537},
        {"parent": 1, "kind": "native", "ref": 1, "thread": 1, "tail": True},
    ]


def test_the_page_describes_every_kind_of_field() -> None:
    lines = schema.markdown().splitlines()
    assert '| `schema` | `"tdbg.trace/1"` | always there |' in lines
    assert "| `calls` | list of `Call` | always there |" in lines
    assert "| `key_sets` | object of list of string | always there |" in lines
    assert "| `failure` | `Failure` or null | always there |" in lines
    assert "| `keys` | integer or null | left out if it has its default |" in lines
    assert '| `kind` | `"python"`, `"c"`, `"native"` | always there |' in lines
