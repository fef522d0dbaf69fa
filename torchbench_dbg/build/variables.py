"""The environment variables of a build: the profile's, the machine's, and the person's own, which win."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg.build import ninja
from torchbench_dbg.errors import UsageError

# What PyTorch's build reads (setup.py's first comment, cmake/EnvVarForwarding.cmake): shown when a person has it set.
_READ_BY_PYTORCH = re.compile(
    r"(USE|BUILD|CMAKE|TORCH|CUDA|CUDNN|NCCL|MKL|BLAS|PYTORCH)_\w+"
    r"|DEBUG|REL_WITH_DEB_INFO|MAX_JOBS|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|CPPFLAGS|BLAS|CUDAHOSTCXX|CUDACXX|CMAKE_GENERATOR"
)
_SWITCHES = re.compile(r"USE_\w+|BUILD_(?!NAMEDTENSOR)\w+|DEBUG|REL_WITH_DEB_INFO")
_SWITCH_VALUES = {"0", "1", "ON", "OFF", "YES", "NO", "TRUE", "FALSE", "Y", "N"}
_NO_SWITCHES = {"USE_CUSTOM_DEBINFO", "BUILD_TYPE"}  # they begin as one, and take text
# They would make the build's Python another one, or show it packages that are not the build's.
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX", "NINJA_STATUS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of the build, and why it has its value."""

    name: str
    value: str
    origin: str


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """`--set VAR=VALUE`. UsageError for what is none, or has a value that the variable can't take."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UsageError(f"--set {text}: VARIABLE=VALUE is expected.", hint="--set USE_MKLDNN=0")
        check(name, value)
        settings[name] = value
    return settings


def check(name: str, value: str) -> None:
    """UsageError if PyTorch's build could not take the value."""
    if name == "MAX_JOBS" and not (value.isdigit() and int(value) > 0):
        raise UsageError(f"MAX_JOBS={value}: a whole number above 0 is expected.", hint="--jobs N sets it")
    if _SWITCHES.fullmatch(name) and name not in _NO_SWITCHES and value.upper() not in _SWITCH_VALUES:
        raise UsageError(f"{name}={value}: it is switched on or off: 1 or 0 is expected.")


def from_environment(environment: Mapping[str, str] = os.environ) -> list[Variable]:
    """What the person has set of the variables that PyTorch's build reads."""
    return [
        Variable(name=name, value=value, origin="your environment")
        for name, value in sorted(environment.items())
        if _READ_BY_PYTORCH.fullmatch(name)
    ]


def merged(*layers: Sequence[Variable]) -> list[Variable]:
    """Later layers win; in the order in which the names first appear."""
    found: dict[str, Variable] = {}
    for layer in layers:
        for variable in layer:
            found[variable.name] = variable
    return list(found.values())


def for_child(
    variables: Sequence[Variable], prefix: Path, *, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The whole environment of the build's commands: the build's Python first on PATH, nothing of other Pythons."""
    kept = {name: value for name, value in environment.items() if name not in _LEFT_OUT}
    path = f"{prefix / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}"
    own = {"PATH": path, "VIRTUAL_ENV": str(prefix), "PYTHONNOUSERSITE": "1", "NINJA_STATUS": ninja.STATUS}
    return {**kept, **own, "PYTHONUNBUFFERED": "1", **{each.name: each.value for each in variables}}
