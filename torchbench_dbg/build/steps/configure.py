"""Run cmake, by way of the sources' own setup.py."""

from __future__ import annotations

from typing import Any

from torchbench_dbg.build.checkout import read_checkout
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, Shell
from torchbench_dbg.build.summary import Summary
from torchbench_dbg.errors import BuildError


def fingerprint(plan: BuildPlan) -> Any:
    """All variables but those that only say how fast and where to."""
    ignored = ("MAX_JOBS", "CCACHE_")
    return [
        sorted((each.name, each.value) for each in plan.variables if not each.name.startswith(ignored)),
        str(plan.python),
    ]


def is_done(plan: BuildPlan) -> bool:
    checkout = read_checkout(plan.source)
    return not checkout.has_cmake_only or (checkout.build_directory / "build.ninja").is_file()


def commands(plan: BuildPlan) -> list[Command]:
    """scikit-build-core configures as part of its build: there is nothing to do before it."""
    checkout = read_checkout(plan.source)
    if not checkout.has_cmake_only:
        return []
    # --cmake: what was configured with other variables is configured again.
    return [Command([str(plan.python), "setup.py", "build", "--cmake", "--cmake-only"], plan.source)]


def run(plan: BuildPlan, shell: Shell) -> None:
    """Configure, and say which wanted features cmake has turned off, before hours go into a build without them."""
    summary = Summary()
    shell.listeners.append(summary.listen)
    try:
        shell.run_all(commands(plan))
    finally:
        shell.listeners.remove(summary.listen)
    lost = summary.turned_off(plan.variables)
    if "USE_CUDA" in lost:
        raise BuildError(f"cmake has turned CUDA off: {lost['USE_CUDA']}", hint="the log has cmake's reasons")
    for name, reason in lost.items():
        shell.watcher.note(f"{name} is on in your variables, and cmake has turned it off: {reason}")
