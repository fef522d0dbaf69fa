"""Fetch the submodules, several at a time."""

from __future__ import annotations

from typing import Any

from torchbench_dbg import process
from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.shell import Command, CommandFailed, Shell
from torchbench_dbg.errors import BuildError

_AT_ONCE = 8
_ATTEMPTS = 3


def fingerprint(plan: BuildPlan) -> Any:
    return [str(plan.source), _head(plan)]


def is_done(plan: BuildPlan) -> bool:
    """Whether every submodule is at the commit that the sources name. A tree without git brings its own."""
    if not _has_submodules(plan):
        return True
    told = process.run(["git", "-C", str(plan.source), "submodule", "status", "--recursive"], timeout=120)
    return told.returncode == 0 and not any(line[:1] in "-+U" for line in told.stdout.splitlines())


def commands(plan: BuildPlan) -> list[Command]:
    if plan.checkout is not None and not _has_submodules(plan):
        return []
    git = ["git", "-C", str(plan.source), "submodule"]
    update = [*git, "update", "--init", "--recursive", "--depth", "1", "--jobs", str(_AT_ONCE), "--progress"]
    return [Command([*git, "sync", "--recursive"]), Command(update)]


def run(plan: BuildPlan, shell: Shell) -> None:
    """A host that is away for a moment costs another attempt; what is there already is not fetched again."""
    if not _has_submodules(plan):
        return
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            shell.run_all(commands(plan))
            return
        except CommandFailed as failure:
            if lost := _lost_commit(failure.tail):
                raise BuildError(
                    f"a submodule's host no longer has the commit that these sources name: {lost}",
                    hint=f"git -C {plan.source} log -1 --format='%h %s' -- {lost.split()[0].strip(chr(39))}"
                    " shows what moved it",
                ) from failure
            if attempt == _ATTEMPTS:
                raise


def _has_submodules(plan: BuildPlan) -> bool:
    return (plan.source / ".git").exists() and (plan.source / ".gitmodules").is_file()


def _head(plan: BuildPlan) -> str:
    if not (plan.source / ".git").exists():
        return ""
    return process.run(["git", "-C", str(plan.source), "rev-parse", "HEAD"], timeout=30).stdout.strip()


def _lost_commit(tail: tuple[str, ...]) -> str | None:
    """git's complaint about a commit that the host lacks; None if it failed for another reason."""
    for line in reversed(tail):
        if "not our ref" in line or "did not contain" in line or "Unable to find current revision" in line:
            return line.removeprefix("fatal: ").removeprefix("error: ")
    return None
