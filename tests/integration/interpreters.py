"""Finds the interpreters that the integration tests run as targets."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VERSIONS = ("3.10", "3.11", "3.12", "3.13")

PROBE = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"


@functools.cache
def find(version: str) -> str | None:
    """Executable of a Python of this version: from PATH, else from pyenv's root; None if there is none
    that starts.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        shutil.which(f"python{version}"),
        *(str(path / "bin/python") for path in sorted(pyenv.glob(f"{version}.*"), reverse=True)),
    ]
    for candidate in candidates:
        if candidate is not None and (executable := _executable(candidate, version)) is not None:
            return executable
    return None


def require(version: str) -> str:
    """Like `find`; skips the test, saying why, where there is none."""
    executable = find(version)
    if executable is None:
        pytest.skip(f"no python{version} on PATH or under the pyenv root")
    return executable


@functools.cache
def find_with_torch() -> str | None:
    """An interpreter with torch: $TDBG_TEST_PYTHON, the one that runs the tests, or the system's."""
    for candidate in (os.environ.get("TDBG_TEST_PYTHON"), sys.executable, "/usr/bin/python3"):
        if candidate and os.path.exists(candidate) and has_torch(candidate):
            return candidate
    return None


def require_torch() -> str:
    """Like `find_with_torch`; skips the test where there is none."""
    executable = find_with_torch()
    if executable is None:
        pytest.skip("no interpreter with torch: set TDBG_TEST_PYTHON to one")
    return executable


@functools.cache
def has_torch(executable: str) -> bool:
    """Whether `import torch` would find something, without importing it."""
    check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return subprocess.run([executable, "-c", check], capture_output=True, timeout=60).returncode == 0


def _executable(candidate: str, version: str) -> str | None:
    # pyenv's shims exist for versions that are not active, and fail: only one that starts counts.
    try:
        done = subprocess.run([candidate, "-c", PROBE], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    words = done.stdout.split(None, 1)
    return words[1].strip() if done.returncode == 0 and len(words) == 2 and words[0] == version else None
