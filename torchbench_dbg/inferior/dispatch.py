"""Answers about torch's dispatcher: the keys in a raw key set, the registrations of an operator."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

_REGISTRATION = re.compile(
    r"^(?P<key>\w+)(?P<alias>\[alias\])?(?P<inactive> \(inactive\))?"
    r": registered at (?P<place>.+?) :: (?P<kernel>.*)$"
)


def key_names(torch: Any, raw: object) -> list[str]:
    """Names of the dispatch keys in the 64-bit representation of a DispatchKeySet, the one that wins
    last; [] where torch can't tell. Never raises.
    """
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 < raw < 2**64:
        return []
    try:
        keys = _key_set(torch, raw)
        if keys is None:
            return []
        # "DispatchKeySet(CPU, AutogradCPU)", from the lowest priority to the highest.
        text = str(torch._C._dispatch_keyset_to_string(keys))
        names = [name.strip() for name in text.partition("(")[2].rstrip(")").split(",") if name.strip()]
        winner = str(torch._C._dispatch_key_name(keys.highestPriorityTypeId()))
        if winner in names:
            names.remove(winner)
        return [*names, winner] if winner != "Undefined" else names
    except Exception:
        return []


def _key_set(torch: Any, raw: int) -> Any:
    kind = torch._C.DispatchKeySet
    if hasattr(kind, "from_raw_repr"):
        return kind.from_raw_repr(raw)
    return _key_set_by_memory(torch, raw)


def _key_set_by_memory(torch: Any, raw: int) -> Any:
    """torch before 2.0 has no from_raw_repr. A pybind11 object is its header, then the pointer to the
    C++ value, here one 64-bit number.

    That this is so is checked on two sets whose numbers are known to differ in one bit; None if it is not.
    """
    kind, key = torch._C.DispatchKeySet, torch._C.DispatchKey
    nothing, cpu, both = kind(key.Undefined), kind(key.CPU), kind(key.CPU) | kind(key.AutogradCPU)
    if (
        _word(nothing)[0] != 0
        or not 0 < _word(cpu)[0] < _word(both)[0]
        or _word(both)[0] & _word(cpu)[0] != _word(cpu)[0]
    ):
        return None
    _word(cpu)[0] = raw
    return cpu


def _word(keys: Any) -> Any:
    """The number in a DispatchKeySet, as an array of one; valid as long as `keys` lives."""
    return (ctypes.c_uint64 * 1).from_address(ctypes.c_size_t.from_address(id(keys) + object.__basicsize__).value)


def operator_records(torch: Any, symbols: Sequence[str]) -> dict[str, dict[str, Any] | None]:
    """For names as `at::_ops` has them (`add_Tensor`): {"name": "aten::add.Tensor",
    "schema", "registrations", ...}.

    None for an unknown one. Never raises.
    """
    records: dict[str, dict[str, Any] | None] = dict.fromkeys(symbols)
    for name in _operator_names(torch):
        # torchgen joins the base name and the overload by an underscore.
        symbol = name.partition("::")[2].replace(".", "_")
        if symbol in records and (name.startswith("aten::") or not records[symbol]):
            record = operator_record(torch, name)
            records[symbol] = {"name": name, **record} if record else None
    return records


def _operator_names(torch: Any) -> list[str]:
    """All operators, as `aten::add.Tensor`. Never raises."""
    try:
        if hasattr(torch._C, "_dispatch_get_all_op_names"):
            return [str(name) for name in torch._C._dispatch_get_all_op_names()]
        # torch 1.13 has no such list; its schemas also tell.
        schemas = torch._C._jit_get_all_schemas()
        return [f"{schema.name}.{schema.overload_name}".rstrip(".") for schema in schemas]
    except Exception:
        return []


def operator_record(torch: Any, name: object) -> dict[str, Any] | None:
    """{"schema", "registrations": {key: "file:line"}, "kernels": {key: kind}, "dump"} of
    `aten::add.Tensor`; None for an unknown operator. Never raises.
    """
    if not isinstance(name, str) or "\0" in name:
        return None
    try:
        dump = str(torch._C._dispatch_dump(name))
    except Exception:
        return None
    schema, registrations, kernels = parse_dump(dump)
    if schema is None and not registrations:
        return None
    return {"schema": schema, "registrations": registrations, "kernels": kernels, "dump": dump}


def parse_dump(dump: str) -> tuple[str | None, dict[str, str], dict[str, str]]:
    """(schema, key -> "file:line", key -> what the kernel is) of the text of `torch._C._dispatch_dump`;
    registrations that others replaced are left out.
    """
    schema: str | None = None
    registrations: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for line in dump.splitlines():
        if line.startswith("schema: ") and "(" in line:
            schema = line[len("schema: ") :]
        found = _REGISTRATION.match(line)
        if found and not found["inactive"]:
            registrations[found["key"]] = found["place"]
            kernels[found["key"]] = found["kernel"].rpartition("[")[2].rstrip("] ").strip()
    return schema, registrations, kernels
