"""`tdbg trace`: run the expression, keep the record, show the view that was asked for."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from torchbench_dbg import console, errors, paths, runs, settings, target
from torchbench_dbg.commands.options import TraceOptions
from torchbench_dbg.errors import UsageError

if TYPE_CHECKING:
    from torchbench_dbg.trace.record import TraceRecord

EXIT_CODES = {
    "finished": 0,
    "raised": errors.ExpressionError.exit_code,
    "crashed": errors.InferiorCrashed.exit_code,
    "exited": errors.InferiorCrashed.exit_code,
    "killed": errors.InferiorCrashed.exit_code,
    "timeout": errors.InferiorTimeout.exit_code,
}


def run(options: TraceOptions, given: Mapping[str, object]) -> int:
    """Trace and show; the exit code says how the expression ended.

    `given`: the options that settings have a value for when the command line has none (None there).
    """
    options = _completed(options, given)
    record = _trace(options)
    text = json.dumps(record.to_json(), ensure_ascii=False)
    if options.save:
        runs.save("trace", text, title=record.expression, status=record.status)
    if options.output is not None:
        paths.write_result(options.output, text + "\n")
    if options.json:
        console.print_text(text)
    else:
        from torchbench_dbg.trace import views

        views.show(record, options.view, console.stdout())
    return EXIT_CODES[record.status]


def _completed(options: TraceOptions, given: Mapping[str, object]) -> TraceOptions:
    """The options with the settings' values, and checked."""
    loaded = settings.load(warn=console.warn)
    values = {name: value if value is not None else loaded[name] for name, value in given.items()}
    values["source"] = Path(str(values["source"])).expanduser() if values["source"] else None
    options = dataclasses.replace(options, python=options.python or loaded["python"], **values)  # type: ignore[arg-type]
    if options.expression == "-":
        options = dataclasses.replace(options, expression=sys.stdin.read())
    _check(options)
    return options


def _check(options: TraceOptions) -> None:
    if options.line is not None and options.script is None:
        raise UsageError("--line is a line of a script: give it with --script FILE.")
    if options.line is not None and options.expression:
        raise UsageError("EXPR and --line both say what to trace: give one of them.")
    if options.line is None and not options.expression.strip():
        raise UsageError("there is nothing to trace.", hint="tdbg trace 'a + b'")
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: a number of seconds above 0 is expected.")
    if options.max_stops < 1:
        raise UsageError(f"--max-stops {options.max_stops}: a number above 0 is expected.")
    if options.script is not None and not options.script.is_file():
        raise UsageError(f"{options.script} is no file that can be read.")
    if options.source is not None and not options.source.is_dir():
        raise UsageError(f"--source {options.source} is no directory.")
    for library in options.load_libraries:
        if not library.is_file():
            raise UsageError(f"--load-library {library} is no file.")


def _trace(options: TraceOptions) -> TraceRecord:
    from torchbench_dbg.trace.engine import TraceEngine
    from torchbench_dbg.trace.request import TraceRequest

    request = TraceRequest(
        python=target.find_target(options.python).python,
        expression=options.expression,
        setup=options.setup,
        script=options.script.absolute() if options.script else None,
        line=options.line,
        arguments=options.arguments,
        device=options.device,
        dtype=options.dtype,
        seed=options.seed,
        cold=options.cold,
        load_libraries=tuple(library.absolute() for library in options.load_libraries),
        breaks=options.breaks,
        hits=options.hits,
        include_noise=options.view.show_all,
        timeout=options.timeout,
        max_stops=options.max_stops,
        cache_directory=paths.cache_directory(),
        source=options.source,
        gdb=options.gdb,
    )
    return TraceEngine(request=request, warn=console.warn).run()
