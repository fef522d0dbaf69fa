"""Settings: from the command line, TDBG_* variables, tdbg.toml, [tool.tdbg] of pyproject.toml, the user's config.toml.

The first that has a value wins. Files in a project are data of somebody else: what chooses a program to run
(`python`, `gdb`) is taken from them only if the user trusts their directory (`trust` in config.toml).
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from torchbench_dbg.errors import SettingsError
from torchbench_dbg.paths import config_directory

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting. `chooses_a_program`: not taken from an untrusted project. `is_path`: relative to its file."""

    name: str
    kind: type
    default: Value | None
    meaning: str
    choices: tuple[str, ...] = ()
    chooses_a_program: bool = False
    is_path: bool = False


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(name="python", kind=str, default=None, meaning="target interpreter", chooses_a_program=True, is_path=True),
        Key(name="gdb", kind=str, default=None, meaning="gdb to use", chooses_a_program=True, is_path=True),
        Key(name="timeout", kind=float, default=60.0, meaning="seconds for the expression"),
        Key(name="device", kind=str, default="cpu", meaning="device of the ready-made tensors"),
        Key(name="dtype", kind=str, default="float32", meaning="dtype of the ready-made tensors"),
        Key(name="seed", kind=int, default=0, meaning="seed of the ready-made tensors"),
        Key(name="max_stops", kind=int, default=50_000, meaning="function entries after which a trace is cut"),
        Key(name="source", kind=str, default=None, meaning="directory of PyTorch's sources", is_path=True),
        Key(name="color", kind=str, default="auto", meaning="when to colour", choices=("auto", "always", "never")),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value, and where it is from."""

    value: Value | None
    origin: str


@dataclass(slots=True, kw_only=True)
class Settings:
    """All settings of one call, by name."""

    by_name: dict[str, Setting] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.by_name[name].value


def load(
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    user_file: Path | None = None,
    warn: Callable[[str], None] = lambda _text: None,
) -> Settings:
    """Read every place. SettingsError for a file that is no TOML, or a value of a wrong kind."""
    user_file = user_file or config_directory() / "config.toml"
    user = _table(user_file, ())
    trusted = _trusted(user.pop("trust", []), environment)
    settings = Settings(by_name={key.name: Setting(value=key.default, origin="default") for key in KEYS.values()})
    _apply(settings, user, user_file, warn)
    for path, place in reversed(list(_project_files(directory or Path.cwd()))):
        table = _table(path, place)
        if path.parent.resolve() not in trusted:
            table = _without_programs(table, path, warn)
        _apply(settings, table, path, warn)
    for key in KEYS.values():
        variable = f"TDBG_{key.name.upper()}"
        if text := environment.get(variable):
            settings.by_name[key.name] = Setting(value=_from_text(key, text, variable), origin=variable)
    return settings


def _project_files(directory: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The nearest tdbg.toml, then the nearest pyproject.toml: each with the path of its table."""
    for name, place in (("tdbg.toml", ()), ("pyproject.toml", ("tool", "tdbg"))):
        for folder in (directory, *directory.parents):
            if (folder / name).is_file():
                yield folder / name, place
                break


def _table(path: Path, place: tuple[str, ...]) -> dict[str, Any]:
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        if place:
            return {}  # another tool's pyproject.toml is not ours to judge
        raise SettingsError(f"{path} can't be read: {error}") from error
    for part in place:
        table = table.get(part, {}) if isinstance(table, dict) else {}
    return dict(table) if isinstance(table, dict) else {}


def is_trusted(directory: Path, *, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user lists a directory in `trust` (config.toml) or TDBG_TRUST."""
    listed = _table(config_directory() / "config.toml", ()).get("trust", [])
    return directory.resolve() in _trusted(listed, environment)


def _trusted(listed: Any, environment: Mapping[str, str]) -> set[Path]:
    paths = [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
    paths += environment.get("TDBG_TRUST", "").split(os.pathsep)
    return {Path(path).expanduser().resolve() for path in paths if path}


def _without_programs(table: dict[str, Any], path: Path, warn: Callable[[str], None]) -> dict[str, Any]:
    ignored = [name for name in table if name in KEYS and KEYS[name].chooses_a_program]
    if ignored:
        warn(
            f"{path} wants to choose {', '.join(ignored)}; that is ignored, because the directory is not trusted "
            f'(trust = ["{path.parent}"] in {config_directory() / "config.toml"} allows it).'
        )
    return {name: value for name, value in table.items() if name not in ignored}


def _apply(settings: Settings, table: dict[str, Any], file: Path, warn: Callable[[str], None]) -> None:
    origin = str(file)
    for name, value in table.items():
        key = KEYS.get(name)
        if key is None:
            close = difflib.get_close_matches(name, KEYS, n=1)
            warn(f"{origin}: there is no setting {name}" + (f", did you mean {close[0]}?" if close else "."))
            continue
        if key.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, key.kind) or isinstance(value, bool):
            raise SettingsError(f"{origin}: {name} = {value!r} is no {_KIND_NAMES[key.kind]}")
        if key.is_path:
            value = _located(cast("str", value), file.parent)
        settings.by_name[name] = Setting(value=_checked(key, cast("Value", value), origin), origin=origin)


def _located(text: str, folder: Path) -> str:
    """A path in a file is relative to that file. A bare name is a command on PATH."""
    if text.startswith("~"):
        return str(Path(text).expanduser())
    return str(folder / text) if os.sep in text else text


_KIND_NAMES: dict[type, str] = {str: "text", int: "whole number", float: "number"}


def _from_text(key: Key, text: str, origin: str) -> Value:
    parse: Callable[[str], Value] = key.kind
    try:
        value = parse(text)
    except ValueError as error:
        raise SettingsError(f"{origin}={text} is no {_KIND_NAMES[key.kind]}") from error
    return _checked(key, value, origin)


def _checked(key: Key, value: Value, origin: str) -> Value:
    if key.choices and value not in key.choices:
        raise SettingsError(f"{origin}: {key.name} is {value!r}; it can be {', '.join(key.choices)}")
    if key.name in ("timeout", "max_stops") and not (isinstance(value, (int, float)) and 0 < value < 1e9):
        raise SettingsError(f"{origin}: {key.name} is {value!r}; a number above 0 is expected")
    return value
