"""The JSON Schema of a record, made from its dataclasses, and its page for people."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal

from torchbench_dbg.paths import write_atomically
from torchbench_dbg.trace.record import SCHEMA, TraceRecord

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of `TraceRecord.to_json()`. Fields that have their default value are left out there."""
    definitions: dict[str, Any] = {}
    root = _object(TraceRecord, definitions)
    root["properties"] = {"schema": {"const": SCHEMA}, **root["properties"]}
    root["required"] = ["schema", *root["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **root, "$defs": definitions}


def _object(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {
        "type": "object",
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "properties": {field.name: _type(hints[field.name], definitions) for field in dataclasses.fields(kind)},
        "required": [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING],
        "additionalProperties": False,
    }


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        name = hint.__name__ if isinstance(hint, type) else type(hint).__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(typing.cast("type", hint), definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type(argument, definitions) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    return {"type": "null"} if hint is type(None) else {"type": _SCALARS[hint]}


INTRODUCTION = """\
# The JSON of a trace

`tdbg trace EXPR --json` prints one object, `-o FILE` writes it, `tdbg show FILE` draws it again. Its `schema` field
is `tdbg.trace/1`; the number changes whenever a field comes, goes or changes its meaning.
[tdbg.trace.1.schema.json](tdbg.trace.1.schema.json) is the same as a JSON Schema.

The heart is `calls`: one entry for every call, in order of time, over all threads. `parent` is the position of the
calling call in the list, so the tree needs no nesting. `kind` says what `ref` points to: a `python` or `c` call to
`codes`, a `native` one to `functions`.

```python
import json

record = json.load(open("trace.json"))
for call in record["calls"]:
    if call["kind"] == "native":
        function = record["functions"][call["ref"]]
        if function["layer"] == "kernel":
            print(function["name"])
```

<!-- made by `make docs` -->
"""


def markdown() -> str:
    """The page docs/reference/trace-json.md."""
    schema = json_schema()
    parts = [INTRODUCTION.rstrip(), _table("The record", schema)]
    parts += [_table(f"`{name}`", definition) for name, definition in sorted(schema["$defs"].items())]
    return "\n\n".join(parts) + "\n"


def _table(title: str, definition: dict[str, Any]) -> str:
    lines = [f"### {title}", "", definition["description"], "", "| field | type | |", "|---|---|---|"]
    for name, kind in definition["properties"].items():
        needed = "always there" if name in definition["required"] else "left out if it has its default"
        lines.append(f"| `{name}` | {_describe(kind)} | {needed} |")
    return "\n".join(lines)


def _describe(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        return f"`{kind['$ref'].rpartition('/')[2]}`"
    if "anyOf" in kind:
        return " or ".join(_describe(each) for each in kind["anyOf"])
    if "enum" in kind:
        return ", ".join(f'`"{value}"`' for value in kind["enum"])
    if "const" in kind:
        return f'`"{kind["const"]}"`'
    if kind["type"] == "array":
        return f"list of {_describe(kind['items'])}"
    if kind["type"] == "object":
        return f"object of {_describe(kind['additionalProperties'])}"
    return str(kind["type"])


def files() -> dict[str, str]:
    """The generated files of docs/reference, by name."""
    return {"tdbg.trace.1.schema.json": json.dumps(json_schema(), indent=2) + "\n", "trace-json.md": markdown()}


if __name__ == "__main__":
    for _name, _text in files().items():
        write_atomically(Path(sys.argv[1]) / _name, _text)
