"""The only door to other processes. Each runs in a process group of its own, which is killed whole."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from torchbench_dbg.errors import TargetError, TdbgError

Stream = int | IO[bytes] | None
NOTHING = subprocess.DEVNULL


class ProcessTimeout(TdbgError):
    """A child did not end in time; its group has been killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a child ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def spawn(
    argv: Sequence[str],
    *,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own. TargetError if the program can't be started."""
    try:
        return subprocess.Popen(
            list(argv),
            pass_fds=tuple(pass_fds),
            env=dict(env) if env is not None else None,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TargetError(f"{argv[0]} can't be started: {reason}") from error


def run(
    argv: Sequence[str],
    *,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    input: str | None = None,
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run a child to its end. ProcessTimeout after `timeout` seconds, TargetError if it can't be started."""
    child = spawn(
        argv,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        stdout, stderr = child.communicate(input.encode() if input is not None else None, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise ProcessTimeout(f"{argv[0]} did not end within {timeout:g} s.") from error
    finally:
        kill_group(child)
    return Completed(
        returncode=child.returncode, stdout=stdout.decode(errors="replace"), stderr=stderr.decode(errors="replace")
    )


def stream(
    argv: Sequence[str],
    on_output: Callable[[bytes], None],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    on_quiet: Callable[[], None] | None = None,
    quiet_seconds: float = 1.0,
) -> int:
    """Run a child to its end and hand over what it prints (stdout and stderr in one), as it comes; its exit code.

    `on_quiet` is called whenever nothing came for `quiet_seconds`. TargetError if it can't be started.
    """
    child = spawn(argv, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    try:
        while True:
            if on_quiet is not None and not select.select([descriptor], [], [], quiet_seconds)[0]:
                on_quiet()
                continue
            data = os.read(descriptor, 1 << 16)
            if not data:
                return child.wait()
            on_output(data)
    finally:
        kill_group(child)


def replace(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> NoReturn:
    """Become another program: terminal, job control and exit code are its own. TargetError if it can't be started."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if cwd is not None:
            os.chdir(cwd)
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        raise TargetError(f"{argv[0]} can't be started: {error.strerror}") from error


def wait(child: subprocess.Popen[bytes], *, timeout: float) -> int | None:
    """The child's exit code, None if it still runs after `timeout` seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(timeout=timeout)
    return None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and all that it started in its group, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    wait(child, timeout=10)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
