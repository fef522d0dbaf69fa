"""`tdbg shell`: read an expression, show its path, read the next."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchbench_dbg import console, paths, settings, target
from torchbench_dbg.errors import INTERRUPTED, UsageError
from torchbench_dbg.failures import READER_GONE, guarded

if TYPE_CHECKING:
    from torchbench_dbg.shell.choices import Choices, View
    from torchbench_dbg.shell.session import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOptions:
    """What the command line of `tdbg shell` said."""

    python: str | None = None
    setup: str | None = None
    breaks: tuple[str, ...] = ()
    view: View = "path"
    json: bool = False


def run(options: ShellOptions, given: Mapping[str, object]) -> int:
    """Exit code 0 from a person's session; from a stream's that of the last expression which failed.

    `given`: the options that settings have a value for when the command line has none (None there).
    """
    from torchbench_dbg.shell.session import Shell

    interactive = console.may_ask()
    choices = _choices(options, given)
    if interactive:
        console.message(f"importing torch in {choices.python} ...")
    with Shell(choices=choices, as_json=options.json) as shell:
        if not interactive:
            from torchbench_dbg.shell import reader

            return _converse(shell, reader.inputs(sys.stdin), stop_at_interrupt=True)
        from torchbench_dbg.shell import prompt

        console.message(_banner(shell))
        _converse(shell, prompt.inputs(shell), stop_at_interrupt=False)
    return 0


def _banner(shell: Shell) -> str:
    facts = shell.server.imported
    return (
        f"torch {facts['torch_version']} · a, b and x, w (requiring grad): {shell.choices.dtype} 4x4 on "
        f"{shell.choices.device}\n"
        "Each expression begins with the same fresh names (:setup CODE adds to them).\n"
        ":help lists the commands, Tab completes, Ctrl-C interrupts, Ctrl-D leaves."
    )


def _converse(shell: Shell, inputs: Iterator[str], *, stop_at_interrupt: bool) -> int:
    code = 0
    for text in inputs:
        ended = guarded(lambda text=text: shell.run(text))  # type: ignore[misc]
        code = ended or code
        if shell.ended or ended == READER_GONE or (ended == INTERRUPTED and stop_at_interrupt):
            break
    return code


def _choices(options: ShellOptions, given: Mapping[str, object]) -> Choices:
    from torchbench_dbg.shell.choices import Choices

    loaded = settings.load(warn=console.warn)
    values = {name: value if value is not None else loaded[name] for name, value in given.items()}
    values["source"] = Path(str(values["source"])).expanduser() if values["source"] else None
    if not float(str(values["timeout"])) > 0:
        raise UsageError(f"--timeout {values['timeout']}: a number of seconds above 0 is expected.")
    return Choices(
        python=target.find_target(options.python or loaded["python"]).python,
        setup=(options.setup,) if options.setup else (),
        breaks=options.breaks,
        view=options.view,
        cache_directory=paths.cache_directory(),
        **values,  # type: ignore[arg-type]
    )
