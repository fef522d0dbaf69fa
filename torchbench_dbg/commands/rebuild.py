"""`tdbg rebuild`: after an edit, say what it costs, and build only that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchbench_dbg import console
from torchbench_dbg.build.checkout import read_checkout
from torchbench_dbg.build.plan import BuildPlan, make_plan
from torchbench_dbg.build.prediction import Prediction, check_files, predict
from torchbench_dbg.build.progress import clock
from torchbench_dbg.build.registry import find_build
from torchbench_dbg.commands import build as build_command
from torchbench_dbg.errors import BuildError


def run(files: list[Path], *, name: str | None, debinfo: list[Path], dry_run: bool, as_json: bool) -> int:
    """`files`: checked to be part of the build. `debinfo`: the only files that get debug information (the sources'
    USE_CUSTOM_DEBINFO); they stay so until a build without."""
    build = find_build(name)
    plan = make_plan(replace(build.request, settings={**build.request.settings, **_debinfo(debinfo, build.source)}))
    ninja_file = plan.source / "build" / "build.ninja"
    if not ninja_file.is_file():
        raise BuildError(f"{build.identifier} is not configured yet.", hint="tdbg build --resume goes on with it")
    own = plan.child_variables()
    check_files(ninja_file.parent, [*files, *debinfo], own)
    prediction = predict(ninja_file.parent, plan.jobs, own)
    _say(prediction, plan)
    if dry_run or (prediction.steps == 0 and not debinfo):
        return 0
    # With setup.py the libraries are installed into the sources, where Python finds them: pip has nothing to do.
    layout = read_checkout(plan.source).layout
    last = "compile" if layout == "setuptools" else "install"
    steps = tuple(step for step in plan.steps if step in ("configure", "compile", last))
    return build_command.run_plan(replace(plan, steps=steps), as_json=as_json)


def _debinfo(files: list[Path], source: Path) -> dict[str, str]:
    if not files:
        return {}
    names = []
    for file in files:
        try:
            names.append(str(file.resolve().relative_to(source.resolve())))
        except ValueError as error:
            raise BuildError(f"--debinfo {file}: it is not in {source}.") from error
    return {"USE_CUSTOM_DEBINFO": ";".join(names)}


def _say(prediction: Prediction, plan: BuildPlan) -> None:
    if not prediction.steps:
        console.message("nothing has changed: ninja has no step to do")
        return
    time = f", about {clock(prediction.seconds)}" if prediction.seconds else ""
    console.message(f"{prediction.steps} step{'s' * (prediction.steps > 1)}{time}, {plan.jobs} at a time")
    for file in prediction.changed[:10]:
        console.message(f"  changed: {file}")
