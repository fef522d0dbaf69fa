"""The target: the interpreter whose torch is looked at. tdbg itself may live in another environment."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchbench_dbg.errors import TargetError
from torchbench_dbg.paths import state_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An interpreter, and why it was chosen."""

    python: Path
    origin: str


def find_target(explicit: str | None, *, environment: Mapping[str, str] = os.environ) -> Target:
    """The interpreter given, else the active environment's, else tdbg's own, else that of a registered build.

    Without an explicit choice the first one that has torch wins; if none has, the first one is returned, and
    what is missing shows when it is started. TargetError if the one that was given can't be run.
    """
    if explicit:
        return Target(python=_explicit(explicit), origin="--python")
    candidates = list(_candidates(environment))
    return next((target for target in candidates if has_torch(target.python)), candidates[0])


def _explicit(text: str) -> Path:
    path = Path(text).expanduser()
    if path.is_dir():
        inside = path / "bin" / "python"
        if not inside.exists():
            raise TargetError(
                f"{path} is a directory without bin/python.", hint="give an interpreter or an environment"
            )
        path = inside
    elif os.sep not in text and (found := shutil.which(text)):
        path = Path(found)
    if not path.exists():
        raise TargetError(
            f"there is no interpreter {text}.", hint="--python takes a path, an environment or a name on PATH"
        )
    if not path.is_file() or not os.access(path, os.X_OK):
        raise TargetError(f"{path} is not executable.", hint="--python takes a Python interpreter")
    return path.absolute()  # not resolved: an environment is found through its own link


def _candidates(environment: Mapping[str, str]) -> Iterator[Target]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := environment.get(variable):
            python = Path(prefix) / "bin" / "python"
            if python.exists():
                yield Target(python=python, origin=f"active environment ({variable})")
    yield Target(python=Path(sys.executable), origin="the interpreter that runs tdbg")
    yield from _builds()


def _builds() -> Iterator[Target]:
    """Builds that are registered in the state directory, the newest first."""
    manifests: list[Path] = []
    with contextlib.suppress(OSError):
        manifests = sorted((state_directory() / "builds").glob("*.json"), key=lambda path: -path.stat().st_mtime)
    for manifest in manifests:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            python = Path(json.loads(manifest.read_text(encoding="utf-8"))["python"])
            if python.exists():
                yield Target(python=python, origin=f"build {manifest.stem}")


# What says in a site-packages directory that torch is installed there: the package itself, or what an editable
# install leaves (setuptools' develop, setuptools' and scikit-build-core's pip install -e). Not `*torch*`: that is
# torchvision, and tdbg itself.
_TORCH_MARKS = (
    "torch/__init__.py",
    "torch.egg-link",
    "__editable__.torch-*",
    "__editable___torch_*",
    "_torch_editable.*",
)


def has_torch(python: Path) -> bool:
    """Whether an interpreter can be expected to find torch, seen without starting it."""
    if python == Path(sys.executable):
        return _importable_here()
    return any(any(place.glob(mark)) for place in _package_directories(python.parent.parent) for mark in _TORCH_MARKS)


def _importable_here() -> bool:
    with contextlib.suppress(ValueError):  # a torch in sys.modules that somebody made
        return importlib.util.find_spec("torch") is not None
    return False


def _package_directories(prefix: Path) -> Iterator[Path]:
    yield from prefix.glob("lib*/python3*/site-packages")
    yield from prefix.glob("lib/python3/dist-packages")  # Debian's own
    yield from prefix.glob("local/lib/python3*/dist-packages")  # what pip installs beside Debian's
    base = _base_of(prefix)
    if base is not None:
        yield from _package_directories(base)


def _base_of(prefix: Path) -> Path | None:
    """The installation whose packages a virtual environment sees too (--system-site-packages); None if it doesn't."""
    values = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            values[name.strip().lower()] = value.strip()
    if values.get("include-system-site-packages", "").lower() != "true" or "home" not in values:
        return None
    base = Path(values["home"]).parent
    return None if base == prefix else base
