"""What a git repository elsewhere has, asked without cloning it."""

from __future__ import annotations

import difflib
import re

from torchbench_dbg import process
from torchbench_dbg.errors import BuildError, TdbgError

_TIMEOUT = 120.0  # seconds


def is_commit(ref: str | None) -> bool:
    """Whether a ref is the whole name of a commit."""
    return ref is not None and re.fullmatch(r"[0-9a-f]{40}", ref) is not None


def check_ref(repo: str, ref: str | None) -> None:
    """BuildError if the repository can't be read, or, with the closest ones, if it has no such branch or tag.

    Whether it has a commit can't be asked.
    """
    if is_commit(ref):
        return
    try:
        told = process.run(["git", "ls-remote", "--heads", "--tags", repo], timeout=_TIMEOUT)
    except TdbgError as error:
        raise BuildError(f"{repo} can't be read: {error.message}") from error
    if told.returncode:
        lines = told.stderr.strip().splitlines()
        reason = next((line for line in lines if line.startswith("fatal: ")), lines[-1] if lines else "no reason given")
        raise BuildError(f"{repo} can't be read: {reason}", hint="--repo takes another address, or a path")
    names = {
        line.partition("\t")[2].removeprefix("refs/heads/").removeprefix("refs/tags/").removesuffix("^{}")
        for line in told.stdout.splitlines()
    }
    if ref is None or ref in names:
        return
    close = difflib.get_close_matches(ref, names, n=3) or sorted(name for name in names if ref in name)[:3]
    hint = f"did you mean {', '.join(close)}?" if close else f"git ls-remote {repo} lists what there is"
    raise BuildError(f"{repo} has neither branch nor tag {ref}.", hint=hint)
