"""The one place where errors end: a message and an exit code for each, a report file for the unexpected."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable

from torchbench_dbg import __version__, console
from torchbench_dbg.errors import INTERRUPTED, InternalError, TdbgError, UsageError
from torchbench_dbg.streams import ReaderGone

READER_GONE = 141  # as of a program that SIGPIPE ended: 128 + 13


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
    except ReaderGone:
        return READER_GONE
    except Exception:  # noqa: BLE001 - the last resort, and it tells all
        import traceback

        return _report(traceback.format_exc())


def _report(trace: str) -> int:
    import platform

    from torchbench_dbg.paths import state_directory, write_atomically

    text = f"tdbg {__version__} · Python {platform.python_version()} · {platform.platform()}\n{sys.argv!r}\n\n{trace}"
    name = datetime.datetime.now().strftime("report-%Y%m%d-%H%M%S.%f.txt")
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


def configure_console(color: str | None, verbosity: int, *, no_input: bool) -> int:
    """Apply the global options. UsageError for a colour that there is not."""
    if color not in (None, "auto", "always", "never"):
        raise UsageError(f"--color {color}: it can be auto, always or never.")
    console.configure(color=color, verbosity=verbosity, ask=not no_input)  # type: ignore[arg-type]
    return 0


def with_settings(command: Callable[[], int]) -> int:
    """Run a command with the colours of the settings: read now, so that --help works whatever is in them."""
    from torchbench_dbg import settings

    console.prefer_color(settings.load()["color"])
    return command()
