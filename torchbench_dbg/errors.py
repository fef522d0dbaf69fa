"""Every way in which tdbg can fail, each with its exit code. They are caught in one place: failures.guarded."""

from __future__ import annotations

from typing import ClassVar


class TdbgError(Exception):
    """What happened and why (`message`), what to run next (`hint`), where to read more (`docs`)."""

    exit_code: ClassVar[int] = 1
    meaning: ClassVar[str] = "an error"

    def __init__(self, message: str, *, hint: str | None = None, docs: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.docs = docs


class UsageError(TdbgError):
    """The command line asks for what can't be."""

    exit_code = 2
    meaning = "wrong usage: unknown command, option or value"


class InternalError(TdbgError):
    """A fault of tdbg itself."""

    exit_code = 3
    meaning = "a fault in tdbg itself; a report file is written"


class TargetError(TdbgError):
    """The interpreter to look at is missing, has no torch, or its torch does not work."""

    exit_code = 4
    meaning = "the target interpreter or its torch is missing or broken"


class ExpressionError(TdbgError):
    """The expression, the setup or the script is no valid Python, or raised."""

    exit_code = 5
    meaning = "the expression, setup or script has a syntax error or raised an exception"


class InferiorCrashed(TdbgError):
    """The process that ran the expression died of a signal or ended itself."""

    exit_code = 6
    meaning = "the traced process crashed or ended itself"


class InferiorTimeout(TdbgError):
    """The time for the expression is over."""

    exit_code = 7
    meaning = "the time limit (--timeout) was reached"


class PtraceForbidden(TdbgError):
    """The kernel or a container does not allow tracing."""

    exit_code = 8
    meaning = "ptrace is not allowed here (container, yama)"


class DebuggerError(TdbgError):
    """No usable gdb, or gdb failed."""

    exit_code = 9
    meaning = "gdb is missing, too old, without Python, or failed"


class UnknownSymbol(TdbgError):
    """A --break name that nothing has."""

    exit_code = 10
    meaning = "no function has the name given to --break"


class RecordError(TdbgError):
    """A saved trace can't be read."""

    exit_code = 11
    meaning = "a saved trace is missing, damaged or of another version"


class SettingsError(TdbgError):
    """A configuration file or a TDBG_ variable is wrong."""

    exit_code = 12
    meaning = "a configuration file or TDBG_ variable is wrong"


class OutputError(TdbgError):
    """A result can't be written."""

    exit_code = 13
    meaning = "the result can't be written: disk full, device error"


class BuildError(TdbgError):
    """PyTorch can't be built, or a step of its build failed."""

    exit_code = 14
    meaning = "the build can't begin, or one of its steps failed"


class RecipeError(TdbgError):
    """A recipe is unknown, wrong, or from a directory that is not trusted."""

    exit_code = 15
    meaning = "a recipe is unknown, wrong, or not trusted"


class RecipeFailed(TdbgError):
    """What a recipe promises did not happen."""

    exit_code = 16
    meaning = "a recipe is red: what it expects was not printed"


class CoreError(TdbgError):
    """A core file can't be read."""

    exit_code = 17
    meaning = "a core file is missing, damaged or of another machine"


INTERRUPTED = 130  # Ctrl-C, as shells have it: 128 + SIGINT


def exit_code_table() -> str:
    """The table of the README, in Markdown."""
    rows = [(0, "success")]
    kinds = [kind for kind in TdbgError.__subclasses__() if "exit_code" in vars(kind)]
    rows += sorted((kind.exit_code, kind.meaning) for kind in kinds)
    rows.append((INTERRUPTED, "interrupted with Ctrl-C"))
    lines = ["| exit code | meaning |", "|---|---|"]
    return "\n".join(lines + [f"| {code} | {meaning} |" for code, meaning in rows])
