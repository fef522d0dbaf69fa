"""tdbg's own recipes are green on real torch, real pdb and real gdb."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest

from ..trace.conftest import Tdbg

pytestmark = pytest.mark.integration

ONLY_PDB = ["retain-graph", "custom-function", "module-params", "optimizer-step"]
WITH_GDB = ["add", "train-min", "protocols", "requires-grad", "dispatch-stub", "crash"]
GDBS = ["", "/usr/bin/gdb"] if os.path.exists("/usr/bin/gdb") else [shutil.which("gdb") or ""]


def play(tdbg: Tdbg, name: str, *options: str) -> dict[str, Any]:
    done = tdbg("run", name, "--json", *options)
    record: dict[str, Any] = json.loads(done.stdout)
    assert (record["status"], done.returncode) == ("green", 0), record.get("failure")
    assert tdbg.survivors() == []
    return record


def printed(record: dict[str, Any], debugger: str, command: str) -> list[str]:
    """The answers of a debugger to a command."""
    return [
        exchange["output"]
        for stage in record["stages"]
        for exchange in stage["exchanges"]
        if exchange["debugger"] == debugger and exchange["command"].startswith(command)
    ]


@pytest.mark.parametrize("name", ONLY_PDB)
def test_recipes_of_pdb(tdbg: Tdbg, name: str) -> None:
    play(tdbg, name)


@pytest.mark.parametrize("gdb", GDBS)
@pytest.mark.parametrize("name", [name for name in WITH_GDB if name != "train-min"])
def test_recipes_of_gdb(tdbg: Tdbg, name: str, gdb: str) -> None:
    play(tdbg, name, *(["--gdb", gdb] if gdb else []))


@pytest.mark.parametrize("gdb", GDBS)
def test_one_transcript_has_the_stacks_of_pdb_and_of_gdb(tdbg: Tdbg, gdb: str) -> None:
    record = play(tdbg, "train-min", *(["--gdb", gdb] if gdb else []))
    (python,) = printed(record, "pdb", "where")
    assert "_engine_run_backward" in python.splitlines()[-2]
    engine, leaf = printed(record, "gdb", "bt")
    frames = engine.splitlines()
    assert "MeanBackward0::apply" in frames[0]
    assert any("torch::autograd::Engine::execute(" in frame for frame in frames)
    assert "AccumulateGrad::apply" in leaf.splitlines()[0]
    stops = " ".join(printed(record, "gdb", "continue"))
    assert stops.index("MeanBackward0") < stops.index("AddmmBackward0") < stops.index("AccumulateGrad")


def test_a_recipe_that_needs_a_gpu_says_so(tdbg: Tdbg) -> None:
    if any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")):
        play(tdbg, "async-cuda")
        return
    done = tdbg("run", "async-cuda")
    assert done.returncode == 0
    assert "skipped: needs a GPU" in done.stdout
    assert "CUDA_LAUNCH_BLOCKING=1" in done.stdout
