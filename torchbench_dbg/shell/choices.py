"""What stays from one expression to the next: how to trace and what to show. Changed by `:set`, `:setup`, `:break`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchbench_dbg.commands.options import ViewOptions
from torchbench_dbg.errors import UsageError
from torchbench_dbg.trace.request import TraceRequest

View = Literal["path", "tree", "stack"]
VIEWS: tuple[View, ...] = ("path", "tree", "stack")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """`timeout` in seconds; `depth` None: all levels."""

    python: Path
    device: str
    dtype: str
    seed: int
    timeout: float
    max_stops: int
    setup: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    view: View = "path"
    depth: int | None = None
    grep: str | None = None
    all: bool = False
    gdb: str | None = None
    source: Path | None = None
    cache_directory: Path | None = None

    def request(self, expression: str) -> TraceRequest:
        return TraceRequest(
            python=self.python,
            expression=expression,
            setup="\n".join(self.setup) or None,
            device=self.device,
            dtype=self.dtype,
            seed=self.seed,
            breaks=self.breaks,
            include_noise=self.all,
            timeout=self.timeout,
            max_stops=self.max_stops,
            gdb=self.gdb,
            source=self.source,
            cache_directory=self.cache_directory,
        )

    def view_options(self, view: View | None = None) -> ViewOptions:
        return ViewOptions(view=view or self.view, depth=self.depth, grep=self.grep, show_all=self.all)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value of `:set`. `values`: what completion offers. `in_target`: only the target can tell what is good."""

    parse: Callable[[str], object]
    expected: str
    values: tuple[str, ...] = ()
    in_target: bool = False


def _positive(text: str) -> float:
    if not 0 < (value := float(text)) < 1e9:
        raise ValueError(text)
    return value


def _levels(text: str) -> int | None:
    if text == "off":
        return None
    if (value := int(text)) < 1:
        raise ValueError(text)
    return value


def _pattern(text: str) -> str | None:
    try:
        return None if text == "off" else re.compile(text).pattern
    except re.error as error:
        raise ValueError(text) from error


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parse


def _switch(text: str) -> bool:
    return _one_of(("on", "off"))(text) == "on"


_DTYPES = "float32 float64 float16 bfloat16 complex64 complex128 int8 int16 int32 int64 uint8 bool"

SETTINGS: dict[str, Setting] = {
    "device": Setting(parse=str, expected="a device", values=("cpu", "cuda", "meta", "mps", "xpu"), in_target=True),
    "dtype": Setting(parse=str, expected="a dtype", values=tuple(_DTYPES.split()), in_target=True),
    "seed": Setting(parse=int, expected="a whole number", in_target=True),
    "timeout": Setting(parse=_positive, expected="a number of seconds above 0"),
    "view": Setting(parse=_one_of(VIEWS), expected="path, tree or stack", values=VIEWS),
    "depth": Setting(parse=_levels, expected="levels of the tree, or off", values=("off",)),
    "grep": Setting(parse=_pattern, expected="a regular expression, or off", values=("off",)),
    "all": Setting(parse=_switch, expected="on or off", values=("on", "off")),
}


def with_setting(choices: Choices, name: str, text: str) -> Choices:
    """The choices with one changed. UsageError for an unknown name or a value that can't be."""
    setting = find_setting(name)
    try:
        return replace(choices, **{name: setting.parse(text)})  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f":set {name} {text}: {setting.expected} is expected.", hint=meant(text, setting)) from error


def find_setting(name: str) -> Setting:
    """A setting by its name. UsageError if there is none."""
    if name not in SETTINGS:
        close = difflib.get_close_matches(name, SETTINGS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(SETTINGS)}"
        raise UsageError(f"there is nothing to set that is called {name}.", hint=hint)
    return SETTINGS[name]


def meant(text: str, setting: Setting) -> str | None:
    """A hint for a value that can't be, None if nothing is like it."""
    close = difflib.get_close_matches(text, setting.values, n=1)
    return f"did you mean {close[0]}?" if close else None


def shown(choices: Choices, name: str) -> str:
    """A setting's value as `:set` takes it."""
    value = getattr(choices, name)
    if value is None or value is False:
        return "off"
    return "on" if value is True else f"{value:g}" if isinstance(value, float) else str(value)
