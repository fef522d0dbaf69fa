"""Where recipes are: tdbg's own, and the user's in .tdbg/recipes/ of the current directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchbench_dbg import paths
from torchbench_dbg.errors import RecipeError
from torchbench_dbg.recipes.format import FILE_NAME, Recipe, did_you_mean, read

PROJECT_FOLDER = Path(".tdbg") / "recipes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A recipe's file, not read yet. `origin`: of whom it is. `project`: whose trust decides whether it runs."""

    name: str
    file: Path
    origin: Literal["tdbg", "project", "file"]
    project: Path

    def read(self) -> Recipe:
        return read(self.file)


def places(directory: Path | None = None) -> list[Place]:
    """All recipes, sorted by name, the project's before tdbg's own of the same name."""
    project = (directory or Path.cwd()).absolute()
    found = [_place(file, "project", project) for file in _files(project / PROJECT_FOLDER)]
    shipped = paths.recipes_directory()
    found += [_place(file, "tdbg", shipped) for file in _files(shipped)]
    return sorted(found, key=lambda place: place.name)


def _files(folder: Path) -> list[Path]:
    return [*folder.glob(f"*/{FILE_NAME}"), *folder.glob("*.toml")]


def _place(file: Path, origin: Literal["tdbg", "project", "file"], project: Path) -> Place:
    name = file.parent.name if file.name == FILE_NAME else file.stem
    return Place(name=name, file=file, origin=origin, project=project)


def find(name: str, directory: Path | None = None) -> Place:
    """A recipe by its name or its file. RecipeError with the nearest name if there is none."""
    if name.endswith(".toml") or "/" in name:
        file = Path(name).absolute()
        file = file / FILE_NAME if file.is_dir() else file
        return _place(file, "file", file.parent)
    every = places(directory)
    found = next((place for place in every if place.name == name), None)
    if found is None:
        close = did_you_mean(name, [place.name for place in every]) or "."
        raise RecipeError(
            f"there is no recipe {name}{close}", hint="tdbg recipes lists them; tdbg run FILE.toml runs a file"
        )
    return found


def names() -> list[str]:
    """For completion."""
    return [place.name for place in places()]
