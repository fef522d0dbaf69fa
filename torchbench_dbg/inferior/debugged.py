"""A program under pdb, on a terminal of its own, that the host reads along: `session.py debug ...`.

The host finds what it must know in the terminal's text, in marks that no terminal shows: ESC ] 7774 ; TOKEN ; TEXT BEL.
TEXT is `prompt` (pdb waits for a command), `run` (it begins to execute one) or `gdb JSON` (the user wants gdb: the
program waits for one line of JSON on the control descriptor).
"""

from __future__ import annotations

import bdb
import contextlib
import ctypes
import json
import linecache
import os
import pdb
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Optional

from .channel import Channel
from .current_line import functions_of, operators_at
from .namespace import new_main_module

HERE = os.path.dirname(os.path.abspath(__file__))
SET_PTRACER, ANY_PROCESS = 0x59616D61, 2**64 - 1
"""PR_SET_PTRACER of prctl(2): where yama lets only ancestors trace, gdb may attach too."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the program. `arguments`: TOKEN CONTROL_FD script|module NAME [ARGUMENT...]."""
    token, control, kind, name, *rest = arguments
    # A program that starts a process of its own does not hand the descriptor on.
    channel = Channel(int(control), int(control))
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_PTRACER, ctypes.c_ulong(ANY_PROCESS), 0, 0, 0)
    sys.argv = [name, *rest]
    debugger = SessionPdb(token, channel)
    sys.breakpointhook = pdb.set_trace = debugger.stop_here_in_program
    directory = os.getcwd()
    try:
        debugger.run_program(_module_code(name) if kind == "module" else _script_code(name))
    except pdb.Restart:
        os.chdir(directory)
        os.set_inheritable(int(control), True)
        entry = os.path.join(HERE, "session.py")
        os.execv(sys.executable, [sys.executable, entry, "debug", token, control, kind, name, *sys.argv[1:]])
    sys.exit(0)


def _script_code(name: str) -> types.CodeType:
    """Compile a script and enter its `__main__`, as `python NAME` would."""
    path = os.path.abspath(name)
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    with open(path, "rb") as file:
        code = _compiled(file.read(), path)
    new_main_module().__dict__.update(__file__=path)
    return code


def _compiled(source: bytes, path: str) -> types.CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        traceback.print_exc(limit=0)
        sys.exit(1)


def _module_code(name: str) -> types.CodeType:
    """Find a module and enter its `__main__`, as `python -m NAME` would."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd())
    try:
        _, spec, code = runpy._get_module_details(name)  # type: ignore[attr-defined]
    except ImportError as error:
        print(f"{sys.executable}: {error}", file=sys.stderr)
        sys.exit(1)
    sys.argv[0] = code.co_filename
    module = new_main_module()
    module.__dict__.update(__file__=code.co_filename, __package__=spec.parent, __loader__=spec.loader, __spec__=spec)
    return code  # type: ignore[no-any-return]


class SessionPdb(pdb.Pdb):
    """pdb, with marks for the host and one more command."""

    def __init__(self, token: str, channel: Channel) -> None:
        self._token, self._channel = token, channel
        self._text = ""
        self._terminal = _open_terminal()
        super().__init__(stdout=self._terminal, skip=[__name__.rpartition(".")[0] + ".*"])
        self.use_rawinput = True  # pdb gives up line editing for a stdout of ours; it is a terminal too

    def mark(self, text: str) -> str:
        return f"\x1b]7774;{self._token};{text}\x07"

    @property
    def prompt(self) -> str:
        """The prompt behind its mark, which readline is told not to count (\\001 and \\002)."""
        return "\001" + self.mark("prompt") + "\002" + self._text

    @prompt.setter
    def prompt(self, text: str) -> None:
        self._text = text

    def precmd(self, line: str) -> str:
        self.stdout.write(self.mark("run"))
        self.stdout.flush()
        return super().precmd(line)

    def cmdloop(self, intro: Any = None) -> None:
        with self._at_terminal():
            super().cmdloop(intro)

    @contextlib.contextmanager
    def _at_terminal(self) -> Iterator[None]:
        """While a person types, descriptors 0 and 1 are the terminal: readline takes no others."""
        if self._terminal is None:
            yield
            return
        terminal = self._terminal.fileno()
        streams, kept = (sys.stdin, sys.stdout), (os.dup(0), os.dup(1))
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        for number in (0, 1):
            os.dup2(terminal, number)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stdin, sys.stdout = streams
            for number, descriptor in enumerate(kept):
                os.dup2(descriptor, number)
                os.close(descriptor)

    def get_stack(self, f: Any, t: Any) -> tuple[list[tuple[types.FrameType, int]], int]:
        """The program's own frames, without those that run it."""
        stack, current = super().get_stack(f, t)
        own = [not entry[0].f_code.co_filename.startswith(HERE) for entry in stack]
        hidden = own.index(True) if True in own else 0
        return stack[hidden:], max(0, current - hidden)

    def stop_here_in_program(self, *_: Any, header: Optional[str] = None, **__: Any) -> None:
        """`breakpoint()` and `pdb.set_trace()` of the program."""
        if header is not None:
            self.message(header)
        self.set_trace(sys._getframe(1))

    def run_program(self, code: types.CodeType) -> None:
        """Run to the end, from a prompt before the first line. SystemExit is the program's own; an exception is shown
        and looked at post mortem, then the exit code is 1.
        """
        self.reset()
        namespace = sys.modules["__main__"].__dict__
        try:
            sys.settrace(self.trace_dispatch)
            exec(code, namespace)
        except bdb.BdbQuit:
            pass
        except (SystemExit, pdb.Restart):
            raise
        except BaseException as error:
            sys.settrace(None)
            self._post_mortem(error)
        finally:
            sys.settrace(None)

    def _post_mortem(self, error: BaseException) -> NoReturn:
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename.startswith(HERE):
            place = place.tb_next
        error.__traceback__ = place
        traceback.print_exception(type(error), error, place)
        sys.stderr.flush()
        self.message("Uncaught exception. Entering post mortem debugging; quit or continue ends the program.")
        self.reset()
        with contextlib.suppress(bdb.BdbQuit):
            self.interaction(None, error if sys.version_info >= (3, 13) else place)  # type: ignore[arg-type]
        sys.exit(1)

    def do_gdb(self, arg: str) -> None:
        """gdb [function]

        Look at this process with gdb, where it stands now. gdb stops at the function, without one at
        those that the current line will run. In gdb, `continue` comes back here, `detach` for good.
        """
        frame, line = self.stack[self.curindex]  # post mortem the frame's own line is a later one
        name = frame.f_code.co_filename
        source = linecache.getlines(name, frame.f_globals)
        wish = {
            "function": arg.strip() or None,
            "place": f"{os.path.basename(name)}:{line}",
            "text": source[line - 1].strip() if 0 < line <= len(source) else "",
            "torch": "torch" in sys.modules,
            "lines": functions_of(operators_at(source, line)) if source and not arg.strip() else [],
        }
        self.stdout.write(self.mark("gdb " + json.dumps(wish)))
        self.stdout.flush()
        answer = self._channel.receive()
        if answer is None:
            self.error("tdbg has gone: there is no gdb")
        elif answer.get("error"):
            self.error(answer["error"])
        elif answer.get("stop") and _is_traced():
            os.kill(os.getpid(), signal.SIGTRAP)  # gdb stops here


def _is_traced() -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in file)


def _open_terminal() -> Any:
    """The controlling terminal to talk on if stdin or stdout is something else, None if both are it."""
    if os.isatty(0) and os.isatty(1):
        return None
    return open(os.open("/dev/tty", os.O_RDWR), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
