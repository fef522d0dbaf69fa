"""Makes the small tree: a torch of six files that is built as the real one is, with a submodule in a git repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
_IDENTITY = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"]


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory; what it printed."""
    done = subprocess.run(["git", *_IDENTITY, *arguments], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(folder: Path, layout: str) -> Path:
    """A git repository of the small tree, with branch main, tag v2.99 and a submodule beside it; its path."""
    small = folder / "small"
    (small / "include" / "small").mkdir(parents=True)
    (small / "include" / "small" / "small.h").write_text("#pragma once\n#define SMALL_VERSION 1\n")
    git(small, "init", "--quiet", "--initial-branch=main")
    git(small, "add", ".")
    git(small, "commit", "--quiet", "-m", "small")
    tree = copy_tree(folder / "torch", layout, with_submodule=False)
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "submodule", "--quiet", "add", str(small), "third_party/small")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "torch")
    git(tree, "tag", "v2.99")
    return tree


def copy_tree(target: Path, layout: str, *, with_submodule: bool = True) -> Path:
    """The small tree without git; `layout`: setuptools or scikit."""
    shutil.copytree(HERE / "small_tree", target, ignore=shutil.ignore_patterns("*_pyproject.toml", "__pycache__"))
    shutil.copyfile(HERE / "small_tree" / f"{layout}_pyproject.toml", target / "pyproject.toml")
    if layout == "scikit":
        (target / "setup.py").unlink()
    (target / ".gitignore").write_text("build/\n*.so\n*.egg-info/\n__pycache__/\ntorch/version.py\n")
    if with_submodule:
        header = target / "third_party" / "small" / "include" / "small" / "small.h"
        header.parent.mkdir(parents=True)
        header.write_text("#pragma once\n#define SMALL_VERSION 1\n")
    return target
