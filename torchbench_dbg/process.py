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
from typing import IO, TYPE_CHECKING, NoReturn

from torchbench_dbg.errors import TargetError, TdbgError

if TYPE_CHECKING:
    from ptyprocess import PtyProcess

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
        kill_session(child)


def spawn_on_terminal(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    size: tuple[int, int],
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
    streams: Mapping[int, int] | None = None,
) -> PtyProcess:
    """Start a child on a pseudo-terminal of its own, in a session of its own. TargetError if it can't be started.

    `size`: rows and columns. `streams`: descriptors 0 to 2 that are to be others than the terminal; each is given by
    one above 2, for those up to 2 are the child's terminal already when it gets them.
    """
    from ptyprocess import PtyProcess

    placed = dict(streams or {})

    def place() -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that is inherited
        for descriptor in pass_fds:
            os.set_inheritable(descriptor, True)
        for number, descriptor in placed.items():
            os.dup2(descriptor, number)

    try:
        return PtyProcess.spawn(
            list(argv),
            env=dict(env),
            cwd=str(cwd) if cwd is not None else None,
            pass_fds=[*pass_fds, *placed.values()],
            preexec_fn=place,
            dimensions=size,
        )
    except (OSError, ValueError) as error:
        raise TargetError(f"{argv[0]} can't be started: {error}") from error


def replace(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> NoReturn:
    """Become another program: terminal, job control and exit code are its own. TargetError if it can't be started."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that is inherited
    try:
        if cwd is not None:
            os.chdir(cwd)
        os.execvpe(argv[0], list(argv), dict(env))
    except OSError as error:
        raise TargetError(f"{argv[0]} can't be started: {error.strerror}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A child that waits for `release` before it becomes its program. Wait for it with os.waitpid."""

    pid: int
    gate: int

    def release(self) -> None:
        os.close(self.gate)


def hold(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, prepare: Callable[[], None]) -> Held:
    """A child in tdbg's own process group, on its terminal: Ctrl-C and job control reach it as they would without tdbg.

    `prepare` runs in the child just before its program, which begins with the signals as they are by default. A
    program that can't be started ends with 127, as a shell's.
    """
    read, write = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(read)
        return Held(pid=pid, gate=write)
    try:
        os.close(write)
        os.read(read, 1)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if cwd is not None:
            os.chdir(cwd)
        prepare()
        os.execve(argv[0], list(argv), dict(env))
    except BaseException as error:  # noqa: BLE001 - the child of a fork must not go on as tdbg
        os.write(2, f"{argv[0]} can't be started: {error}\n".encode())
    os._exit(127)


def wait(child: subprocess.Popen[bytes], *, timeout: float) -> int | None:
    """The child's exit code, None if it still runs after `timeout` seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return child.wait(timeout=timeout)
    return None


def kill_session(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and all of its session: ninja gives each of its commands a group of its own."""
    for name in os.listdir("/proc"):
        if name.isdigit() and name != str(child.pid):
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == child.pid:
                    os.kill(int(name), signal.SIGKILL)
    kill_group(child)


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and all that it started in its group, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    wait(child, timeout=10)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
