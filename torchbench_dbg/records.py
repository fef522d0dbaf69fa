"""Records on disk: frozen dataclasses, their JSON form, and files of them. A `schema` says which record it is."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

from torchbench_dbg.errors import RecordError

_T = TypeVar("_T")


def to_json(record: Any, schema: str) -> dict[str, Any]:
    """The JSON form of a record (a dataclass); `schema` as in "tdbg.trace/1"."""
    return {"schema": schema, **plain(record)}


def from_json(kind: type[_T], schema: str, data: Any, *, source: str, again: str) -> _T:
    """The reverse of `to_json`. RecordError where it does not follow the schema.

    `source` says in messages what was read, `again` the command that makes such a record anew.
    """
    found = data.get("schema") if isinstance(data, dict) else None
    if found != schema:
        raise RecordError(
            f"{source} is no record of this tdbg: its schema is {found!r}, {schema!r} is expected.",
            hint=f"record it again: {again}",
        )
    try:
        return build(kind, {key: value for key, value in data.items() if key != "schema"})
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise RecordError(f"{source} does not follow {schema}: {error}") from error


def read(path: Path) -> dict[str, Any]:
    """The JSON object in a file. RecordError says what is wrong with the file."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(
            f"{path} can't be read: {error.strerror}", hint="tdbg runs lists the runs that are kept"
        ) from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}", hint="tdbg runs lists the runs that are kept") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path} is no record of tdbg's.")
    return data


def plain(value: Any) -> Any:
    """Dataclasses to dicts, without the fields that have their default value (they are most of a big trace)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(member)
            for field in dataclasses.fields(value)
            if (member := getattr(value, field.name)) != field.default
        }
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return value


_hints: dict[type, dict[str, Any]] = {}


def build(kind: type[_T], data: Any) -> _T:
    """A dataclass from its plain form, every field checked. TypeError, ValueError or KeyError where it does not fit."""
    if not isinstance(data, dict):
        raise TypeError(f"{kind.__name__} expected, {type(data).__name__} found")
    if kind not in _hints:
        _hints[kind] = typing.get_type_hints(kind)
    hints = _hints[kind]
    if unknown := set(data) - set(hints):
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    return kind(**{name: _value(hints[name], value, f"{kind.__name__}.{name}") for name, value in data.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), value)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _value(next(argument for argument in arguments if argument is not type(None)), value, where)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{where}: {value!r} is none of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{where}: a list is expected")
        return tuple(_value(arguments[0], member, where) for member in value)
    if origin is dict:
        if not isinstance(value, dict):
            raise TypeError(f"{where}: an object is expected")
        return {key: _value(arguments[1], member, where) for key, member in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise TypeError(f"{where}: {hint.__name__} is expected, {type(value).__name__} found")
    return value
