"""Clone the sources, at the ref that was asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchbench_dbg.build.plan import BuildPlan
from torchbench_dbg.build.remote import is_commit
from torchbench_dbg.build.shell import Command, Shell
from torchbench_dbg.errors import BuildError

_ATTEMPTS = 3


def fingerprint(plan: BuildPlan) -> Any:
    return [plan.request.repo, plan.request.ref, str(plan.source)]


def is_done(plan: BuildPlan) -> bool:
    return (plan.source / ".git").exists()


def commands(plan: BuildPlan) -> list[Command]:
    """A shallow clone of one ref, without submodules. git clone takes no commit, so that is fetched."""
    request, partial = plan.request, _partial(plan)
    if not is_commit(request.ref):
        branch = ["--branch", request.ref] if request.ref else []
        return [Command(["git", "clone", "--progress", "--depth", "1", *branch, request.repo, str(partial)])]
    git = ["git", "-C", str(partial)]
    return [
        Command(["git", "init", "--quiet", str(partial)]),
        Command([*git, "remote", "add", "origin", request.repo]),
        Command([*git, "fetch", "--progress", "--depth", "1", "origin", str(request.ref)]),
        Command([*git, "checkout", "--quiet", "FETCH_HEAD"]),
    ]


def run(plan: BuildPlan, shell: Shell) -> None:
    """Clone beside the place and move there what is whole. A host that is away for a moment costs another attempt."""
    if plan.source.exists() and any(plan.source.iterdir()):
        raise BuildError(
            f"{plan.source} is there already, and is no clone that tdbg made.",
            hint=f"--source {plan.source} builds it as it is; --dir DIR clones elsewhere",
        )
    partial = _partial(plan)
    partial.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _ATTEMPTS + 1):
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _clone(plan, partial, shell)
            break
        except GitFailed as failure:
            if attempt == _ATTEMPTS:
                raise
            shell.watcher.note(f"{failure.message} Attempt {attempt + 1} of {_ATTEMPTS}.")
    if plan.source.exists():
        plan.source.rmdir()
    partial.rename(plan.source)


class GitFailed(BuildError):
    """git ended with an error."""


def _clone(plan: BuildPlan, partial: Path, shell: Shell) -> None:
    import git  # a fifth of a second, and an ImportError without a git on PATH

    class Progress(git.RemoteProgress):
        def new_message_handler(self) -> Callable[[str], None]:  # every line, also what is no progress
            return shell.take_line

    request, variables = plan.request, dict(shell.variables)
    try:
        if is_commit(request.ref):
            repository = git.Repo.init(partial)
            repository.git.update_environment(**variables)
            remote = repository.create_remote("origin", request.repo)
            remote.fetch(request.ref, depth=1, progress=Progress())
            repository.git.checkout("FETCH_HEAD", quiet=True)
        else:
            # GitPython's annotation of `progress` leaves out the class that its documentation gives for it.
            options: dict[str, Any] = {"branch": request.ref} if request.ref else {}
            progress: Any = Progress()
            git.Repo.clone_from(request.repo, partial, progress=progress, env=variables, depth=1, **options)
    except git.GitError as error:
        lines = [line.strip() for line in str(error).splitlines() if "fatal: " in line or "error: " in line]
        raise GitFailed(f"git can't clone {request.repo}: {lines[0] if lines else error}.") from error


def _partial(plan: BuildPlan) -> Path:
    return plan.source.with_name(plan.source.name + ".partial")
