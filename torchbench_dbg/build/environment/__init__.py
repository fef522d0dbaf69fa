"""Where a build's Python and tools live: one module for each program that can make an environment."""

from __future__ import annotations

import difflib

from torchbench_dbg.build.environment.conda import CondaFamily
from torchbench_dbg.build.environment.protocol import Backend
from torchbench_dbg.build.environment.rattler import Rattler
from torchbench_dbg.build.environment.uv import Uv
from torchbench_dbg.build.environment.venv import Venv
from torchbench_dbg.errors import BuildError, UsageError

BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (CondaFamily("conda"), CondaFamily("mamba"), CondaFamily("micromamba"), Rattler(), Uv(), Venv())
}
"""In the order in which `auto` asks them: conda packages bring compilers and a gdb of their own."""


def choose(name: str, python_version: str | None) -> tuple[Backend, str]:
    """(the backend asked for, why it was chosen). `auto` takes the first that works here.

    UsageError for a name that there is not, BuildError if it does not work here.
    """
    if name == "auto":
        reasons: list[str] = []
        for backend in BACKENDS.values():
            problem = backend.problem(python_version)
            if problem is None:
                return backend, "; ".join([*reasons, f"{backend.name} is here"])
            reasons.append(problem)
        raise BuildError("no environment can be made: " + "; ".join(reasons) + ".")
    if name not in BACKENDS:
        close = difflib.get_close_matches(name, BACKENDS, n=1)
        raise UsageError(
            f"--env-manager {name}: there is none of that name.",
            hint=f"did you mean {close[0]}?" if close else f"it can be auto, {', '.join(BACKENDS)}",
        )
    if problem := BACKENDS[name].problem(python_version):
        raise BuildError(f"--env-manager {name}: {problem}.", hint="--env-manager auto takes what is here")
    return BACKENDS[name], "--env-manager"
