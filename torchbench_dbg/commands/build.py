"""`tdbg build`: make the plan, show it, run it, show what came of it."""

from __future__ import annotations

import json

from torchbench_dbg import console, errors, runs
from torchbench_dbg.build import views
from torchbench_dbg.build.plan import BuildPlan, make_plan
from torchbench_dbg.build.progress import TalkingWatcher
from torchbench_dbg.build.registry import find_build, remember
from torchbench_dbg.build.request import BuildRequest
from torchbench_dbg.build.runner import Runner
from torchbench_dbg.errors import BuildError

_EXIT_CODES = {
    "finished": 0,
    "stopped": 0,
    "failed": errors.BuildError.exit_code,
    "interrupted": errors.INTERRUPTED,
}


def run(request: BuildRequest, *, dry_run: bool, as_json: bool) -> int:
    """The exit code says how the build ended."""
    plan = make_plan(request)
    if not dry_run:
        return run_plan(plan, as_json=as_json)
    console.print_text("\n".join(views.script_lines(plan)))
    return 0


def resume(name: str | None, *, as_json: bool) -> int:
    """Go on with a build where it was; the one used last if there is no name."""
    return run_plan(make_plan(find_build(name).request), as_json=as_json)


def run_plan(plan: BuildPlan, *, as_json: bool) -> int:
    """Show a plan, run it, show what came of it."""
    for line in views.plan_lines(plan):
        console.stderr().print(line)
    fatal = [problem for problem in plan.problems if problem.severity == "fail"]
    if fatal:
        raise BuildError(
            f"the build can't begin: {fatal[0].message}" + (f" (and {len(fatal) - 1} more)" if fatal[1:] else ""),
            hint=fatal[0].hint,
        )
    remember(plan)
    watcher = TalkingWatcher(plan.source / "build" / ".ninja_log")
    record = Runner(plan=plan, watcher=watcher).run()
    if record.status in ("failed", "interrupted"):
        watcher.failed()
    text = json.dumps(record.to_json(), ensure_ascii=False)
    runs.save("build", text, title=plan.identifier, status=record.status)
    if as_json:
        console.print_text(text)
    else:
        for line in views.result_lines(record):
            console.stdout().print(line)
    return _EXIT_CODES[record.status]
