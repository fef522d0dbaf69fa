"""What a source tree says of itself: which PyTorch it is, how it is built, what its build needs.

Read from the tree, never guessed from a version number: pyproject.toml's [build-system], setup.py, version.txt.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torchbench_dbg.errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Layout = Literal["setuptools", "scikit-build-core"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A source tree that can be built.

    `layout`: who drives cmake. `build_requires`: requirement specifiers of [build-system].requires.
    `requirements`: the tree's requirements.txt, if it has one. `has_cmake_only`: whether setup.py can stop after
    configuring (`setup.py build --cmake-only`; PyTorch up to 2.13).
    """

    directory: Path
    version: str | None
    layout: Layout
    build_requires: tuple[str, ...]
    requirements: Path | None
    has_cmake_only: bool
    editable_mode: str | None = None  # scikit-build-core's: redirect or inplace

    @property
    def build_directory(self) -> Path:
        """Where cmake works (build.ninja, CMakeCache.txt)."""
        return self.directory / "build"


def read_checkout(directory: Path) -> Checkout:
    """The facts of a tree. BuildError if it is none that can be built."""
    if not directory.is_dir():
        raise BuildError(f"{directory} is no directory.", hint="--source takes a PyTorch source tree")
    settings = _pyproject(directory / "pyproject.toml")
    system = settings.get("build-system", {})
    setup = directory / "setup.py"
    backend = str(system.get("build-backend", ""))
    if not backend and not setup.is_file():
        raise BuildError(
            f"{directory} is no source tree that can be built: it has neither setup.py nor a [build-system].",
            hint="--source takes a PyTorch source tree; without it tdbg clones one",
        )
    requirements = directory / "requirements.txt"
    return Checkout(
        directory=directory,
        version=_version(directory),
        layout="scikit-build-core"
        if "scikit_build_core" in backend or _wraps_scikit(directory, system)
        else "setuptools",
        build_requires=tuple(map(str, system.get("requires", ()))),
        requirements=requirements if requirements.is_file() else None,
        has_cmake_only=setup.is_file() and "--cmake-only" in setup.read_text(encoding="utf-8", errors="replace"),
        editable_mode=settings.get("tool", {}).get("scikit-build", {}).get("editable", {}).get("mode"),
    )


def _pyproject(path: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return settings
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BuildError(f"{path} can't be read: {error}") from error


def _wraps_scikit(directory: Path, system: dict[str, Any]) -> bool:
    """Whether a backend of the tree's own (backend-path) hands over to scikit-build-core."""
    if not any("scikit-build-core" in str(each) for each in system.get("requires", ())):
        return False
    paths = [directory / str(each) for each in system.get("backend-path", ())]
    module = str(system.get("build-backend", "")).partition(":")[0].replace(".", "/")
    return any((path / f"{module}.py").is_file() or (path / module).is_dir() for path in paths)


def _version(directory: Path) -> str | None:
    try:
        text = (directory / "version.txt").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return text if re.fullmatch(r"[\w.+!-]{1,64}", text) else None
