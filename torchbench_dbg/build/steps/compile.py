"""Compile, by ninja: it knows what is done, so it is asked every time."""

from __future__ import annotations

from typing import Any

from torchbench_dbg.build.checkout import read_checkout
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, Shell


def fingerprint(plan: BuildPlan) -> Any:
    return [plan.request.target]


def commands(plan: BuildPlan) -> list[Command]:
    """What setup.py would call (cmake --build --target install), without the Python around it."""
    checkout = read_checkout(plan.source)
    build = checkout.build_directory
    if not checkout.has_cmake_only and not (build / "build.ninja").is_file():
        return []  # scikit-build-core compiles in the install step
    target = plan.request.target or "install"
    command = ["cmake", "--build", str(build), "--target", target, "--config", plan.profile.cmake_type]
    return [Command([*command, "--", "-j", str(plan.jobs)], plan.source)]


def run(plan: BuildPlan, shell: Shell) -> None:
    shell.run_all(commands(plan))
