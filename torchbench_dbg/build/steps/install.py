"""Install into the environment, editable, without isolation."""

from __future__ import annotations

import os
from typing import Any

from torchbench_dbg.build.checkout import read_checkout
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, Shell


def fingerprint(plan: BuildPlan) -> Any:
    return [str(plan.prefix), str(plan.source)]


def commands(plan: BuildPlan) -> list[Command]:
    """pip, which every version of the sources supports; `setup.py develop` is gone or only calls it."""
    command = [str(plan.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-build-isolation"]
    command += ["--no-deps", "-v", "-e", "."]
    if read_checkout(plan.source).layout == "scikit-build-core":
        command += ["--config-settings=build-dir=build"]
    # A person's constraints for other projects may name a torch; nothing is resolved here that they could be for.
    return [Command(command, plan.source, {"PIP_CONSTRAINT": os.devnull})]


def run(plan: BuildPlan, shell: Shell) -> None:
    shell.run_all(commands(plan))
