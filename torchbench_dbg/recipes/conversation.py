"""The two debuggers of a recipe, each on a pseudo-terminal: what is typed, and what comes before the next prompt."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torchbench_dbg.debugger.gdb import Gdb, environment
from torchbench_dbg.errors import DebuggerError, TargetError, UsageError
from torchbench_dbg.recipes.format import PROMPTS

Floor = Literal["pdb", "gdb", "ended"]
_SIZE = (50, 2000)  # rows and columns; nothing is wrapped
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
_LIBRARIES = ("libtorch_cpu", "libtorch_python", "libtorch_cuda", "libc10", "libpython")  # whose names gdb reads
_SETTINGS = (
    "set auto-load off",
    "set debuginfod enabled off",
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set style enabled off",
    "set editing off",
    "set breakpoint pending on",
    "set print thread-events off",
)
_PDB_IS_DONE = re.compile(
    r"^The program (?:finished and will be restarted|exited via sys\.exit\(\)).*\n?", re.MULTILINE
)
_LEAVE = b"\x1d"  # Ctrl-]


class Silence(DebuggerError):
    """A debugger gave no prompt in time. `output`: what it printed until then."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message, hint="--timeout SECONDS gives it more time")
        self.output = output


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was printed until the next prompt, and who waits for a command now."""

    at: Floor
    text: str
    seconds: float


class Conversation:
    """A script under pdb, under gdb, or under pdb with a gdb that is attached to it.

    Both talk to this object only. The answer to a command ends at the next prompt, whoever gives it: `continue` in
    pdb can end in gdb, at a breakpoint of its own. gdb reads the symbols of torch and of Python alone when it attaches,
    which takes half a second.
    """

    def __init__(
        self,
        *,
        python: Path,
        script: Path,
        arguments: Sequence[str],
        gdb: Gdb,
        variables: Mapping[str, str],
        timeout: float,
    ) -> None:
        self._command = [str(python), str(script), *arguments]
        self._gdb, self._folder, self._timeout = gdb, script.parent, timeout
        self._variables = {**os.environ, **variables, "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
        self._terminals: dict[str, Any] = {}
        self._prompt_of_gdb = f"(gdb-{secrets.token_hex(4)}) "  # no program prints that by chance
        self._pdb_waits = False
        self.at: Floor = "ended"

    def start_pdb(self) -> Answer:
        """The script under pdb, before its first line."""
        self._spawn("pdb", [self._command[0], "-m", "pdb", *self._command[1:]], self._variables)
        return self._answer("")

    def start_gdb(self) -> Answer:
        """The script under gdb, not running yet."""
        clean = {**environment(self._gdb), **self._variables, "PYTHONNOUSERSITE": "1"}
        self._spawn("gdb", [*self._gdb_command(), "--args", *self._command], clean)
        return self._answer("")

    def attach_gdb(self) -> Answer:
        """gdb attached to the process in which pdb stands; the program is stopped."""
        self._spawn(
            "gdb", [*self._gdb_command(), "-iex", "set auto-solib-add off", "-p", str(self.pid)], environment(self._gdb)
        )
        answer = self._answer("")
        for library in _LIBRARIES:
            self.send(f"sharedlibrary {library}")
        return answer

    @property
    def pid(self) -> int:
        """Of the process that runs the script under pdb."""
        return int(self._terminals["pdb"].pid)

    @property
    def has_gdb(self) -> bool:
        return "gdb" in self._terminals

    def send(self, command: str) -> Answer:
        """Type a command to whoever has the floor, and wait for the next prompt. Silence if none comes."""
        self._terminals[self.at].sendline(command)
        if self.at == "pdb":
            self._pdb_waits = False
        return self._answer(command)

    def close(self) -> None:
        """Kill all of it and wait for it, gdb first, so that it does not let the program go on."""
        for name in ("gdb", "pdb"):
            if name in self._terminals:
                _kill(self._terminals.pop(name))
        self.at = "ended"

    def interact(self) -> None:
        """The user's terminal is that of whoever has the floor, until Ctrl-] or the end of the program."""
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        print(PROMPTS[self.at], end="", flush=True)
        tty.setraw(descriptor)
        try:
            while self.at != "ended" and self._exchange_bytes(descriptor):
                pass
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        print(flush=True)
        if self.at != "ended":
            self._find_prompt()

    def _exchange_bytes(self, keyboard: int) -> bool:
        """One turn of `interact`; False when the user leaves."""
        descriptors = {terminal.child_fd: name for name, terminal in self._terminals.items()}
        for ready in select.select([keyboard, *descriptors], [], [])[0]:
            data = _read(ready)
            if ready == keyboard:
                os.write(self._terminals[self.at].child_fd, data.partition(_LEAVE)[0])
                self._pdb_waits = self._pdb_waits and not (self.at == "pdb" and b"\r" in data)
                if not data or _LEAVE in data:
                    return False
                continue
            if not data:
                self.at = "ended"
                return False
            name = descriptors[ready]
            self._notice_prompt(name, data)
            os.write(sys.stdout.fileno(), data.replace(self._prompt_of_gdb.encode(), PROMPTS["gdb"].encode()))
        return True

    def _notice_prompt(self, name: str, data: bytes) -> None:
        text = data.decode(errors="replace")
        if text.endswith(self._prompt_of_gdb if name == "gdb" else PROMPTS["pdb"]):
            self.at = "gdb" if name == "gdb" else "pdb"
            self._pdb_waits = self._pdb_waits or name == "pdb"
        elif name == "gdb" and self._pdb_waits and "Continuing." in text:
            self.at = "pdb"  # its prompt has been there all the time

    def _find_prompt(self) -> None:
        """After the user left: forget what is half typed, and wait for a prompt that is known to be new."""
        mark = f"tdbg{secrets.token_hex(4)}"
        half, whole = mark[:6], mark[6:]
        command = f"p '{half}' '{whole}'" if self.at == "pdb" else f'printf "%s%s\\n", "{half}", "{whole}"'
        self._pdb_waits = self._pdb_waits and self.at != "pdb"
        self._terminals[self.at].send("\x15" + command + "\n")
        text = ""
        while mark not in text:
            text += self._answer("").text

    def _gdb_command(self) -> list[str]:
        settings = [*_SETTINGS, f"set prompt {self._prompt_of_gdb}"]
        return [str(self._gdb.path), "-nx", "-nh", "-q", *(word for each in settings for word in ("-iex", each))]

    def _spawn(self, name: str, command: list[str], variables: Mapping[str, str]) -> None:
        import pexpect

        try:
            self._terminals[name] = pexpect.spawn(
                command[0],
                command[1:],
                env=dict(variables),
                cwd=str(self._folder),
                dimensions=_SIZE,
                echo=True,
                encoding="utf-8",
                codec_errors="replace",
                timeout=self._timeout,
            )
        except pexpect.ExceptionPexpect as error:
            raise TargetError(f"{command[0]} can't be started: {error}") from error
        self.at = "gdb" if name == "gdb" else "pdb"

    def _answer(self, command: str) -> Answer:
        """What comes until a prompt. A gdb that lets a program go on in which pdb waits gets no new prompt of pdb's."""
        begin = time.monotonic()
        texts = dict.fromkeys(self._terminals, "")
        speaker = self.at
        while True:
            floor = self._floor(texts)
            if floor is not None:
                break
            if time.monotonic() - begin > self._timeout:
                raise Silence(
                    f"{speaker} gave no prompt within {self._timeout:g} s.", _clean("".join(texts.values()), command)
                )
            self._read_more(texts)
        self.at = floor
        text = "".join(texts[name] for name in sorted(texts))
        for prompt in (self._prompt_of_gdb, PROMPTS["pdb"]):
            text = text.replace(prompt, "")
        return Answer(at=floor, text=_clean(text, command), seconds=time.monotonic() - begin)

    def _read_more(self, texts: dict[str, str]) -> None:
        import pexpect

        descriptors = {terminal.child_fd: name for name, terminal in self._terminals.items()}
        for ready in select.select(list(descriptors), [], [], 0.1)[0]:
            name = descriptors[ready]
            try:
                texts[name] += self._terminals[name].read_nonblocking(1 << 16, 0)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                self._terminals.pop(name).close(force=True)

    def _floor(self, texts: Mapping[str, str]) -> Floor | None:
        """Who waits for a command, None if nobody does yet."""
        if not self._terminals:
            return "ended"
        if texts.get("gdb", "").endswith(self._prompt_of_gdb):
            return "gdb"
        printed = texts.get("pdb", "")
        if printed.endswith(PROMPTS["pdb"]):
            self._pdb_waits = True
            return "ended" if _PDB_IS_DONE.search(printed.replace("\r", "")) else "pdb"
        if self._pdb_waits and ("gdb" not in self._terminals or "Continuing." in texts["gdb"]):
            return "pdb"
        return None


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 12)
    except OSError:  # EIO: the other end of a pseudo-terminal is closed
        return b""


def _clean(text: str, command: str) -> str:
    """What was printed, without the echo of the command, terminal sequences, and pdb's talk of starting again."""
    text = _ESCAPES.sub("", text)
    if command and text.startswith(command):
        text = text[len(command) :]
    if done := _PDB_IS_DONE.search(text):
        text = text[: done.start()]
    return text.strip("\n")


def _kill(terminal: Any) -> None:
    import pexpect

    for pid in (terminal.pid, *_descendants(terminal.pid)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(pexpect.ExceptionPexpect):  # it had ended
        terminal.wait()
    with contextlib.suppress(pexpect.ExceptionPexpect):
        terminal.close()


def _descendants(pid: int) -> list[int]:
    """All that a process started and that still runs; what gdb debugs is among it."""
    found = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def require_terminal() -> None:
    """UsageError where there is nobody whose terminal could be handed over."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "--interactive hands the terminal over, and this is none.", hint="run it without --interactive"
        )
