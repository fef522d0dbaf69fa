"""The one place where errors end: a message and an exit code for each, a report file for the unexpected."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import traceback
from collections.abc import Callable

from torchbench_dbg import __version__, console
from torchbench_dbg.errors import INTERRUPTED, InternalError, TdbgError

_BROKEN_PIPE = 141  # 128 + SIGPIPE: whoever read our output left


def guarded(command: Callable[[], int]) -> int:
    """The exit code of a command, whatever it raises."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except TdbgError as error:
        console.error(error.message, hint=error.hint, docs=error.docs)
        return error.exit_code
    except KeyboardInterrupt:
        console.message("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception:  # noqa: BLE001 - the last resort, and it tells all
        return _report(traceback.format_exc())


def _report(trace: str) -> int:
    from torchbench_dbg.paths import state_directory, write_atomically

    text = f"tdbg {__version__} · Python {platform.python_version()} · {platform.platform()}\n{sys.argv!r}\n\n{trace}"
    name = datetime.datetime.now().strftime("report-%Y%m%d-%H%M%S.txt")
    last = trace.strip().splitlines()[-1]
    try:
        path = state_directory() / "reports" / name
        write_atomically(path, text)
        console.error(
            f"a fault in tdbg itself: {last}", hint=f"the whole story is in {path}; please attach it to a report"
        )
    except OSError:
        console.error(f"a fault in tdbg itself: {last}")
        sys.stderr.write(text + "\n")
    return InternalError.exit_code


def configure_console(color: str | None, verbosity: int) -> int:
    """Apply the global options; settings say what the command line does not."""
    from torchbench_dbg import settings
    from torchbench_dbg.errors import UsageError

    if color not in (None, "auto", "always", "never"):
        raise UsageError(f"--color {color}: it can be auto, always or never.")
    console.configure(color=color or "auto", verbosity=verbosity)  # type: ignore[arg-type]
    if color is None:
        console.configure(color=settings.load()["color"], verbosity=verbosity)
    return 0
