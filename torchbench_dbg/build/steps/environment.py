"""Make the environment of the build."""

from __future__ import annotations

import shutil
from typing import Any

from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, Shell

_MARK = ".tdbg-environment"  # only what tdbg made may be removed again


def fingerprint(plan: BuildPlan) -> Any:
    return [plan.backend.name, plan.request.python_version, plan.request.channel, str(plan.prefix)]


def is_done(plan: BuildPlan) -> bool:
    return plan.python.exists()


def commands(plan: BuildPlan) -> list[Command]:
    return [
        Command(argv) for argv in plan.backend.create(plan.prefix, plan.request.python_version, plan.request.channel)
    ]


def run(plan: BuildPlan, shell: Shell) -> None:
    if plan.prefix.exists():
        _remove_half(plan)
    plan.prefix.parent.mkdir(parents=True, exist_ok=True)
    mark = plan.prefix.parent / f"{plan.prefix.name}{_MARK}"
    mark.touch()
    shell.run_all(commands(plan))


def _remove_half(plan: BuildPlan) -> None:
    """A prefix that an interrupted run began, or that another version was made in. One of the person's own stays."""
    from torchbench_dbg.errors import BuildError

    mark = plan.prefix.parent / f"{plan.prefix.name}{_MARK}"
    if not mark.exists() and any(plan.prefix.iterdir()):
        raise BuildError(
            f"{plan.prefix} is there already, and was not made by tdbg.", hint="--dir DIR chooses another place"
        )
    shutil.rmtree(plan.prefix)
