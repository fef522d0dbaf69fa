"""From a repository to a torch that is imported, in both of PyTorch's ways to build, and again."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .conftest import Builder
from .trees import copy_tree, git

OBJECTS = 5  # of the small tree


def compiled(source: Path) -> list[str]:
    """Every object that ninja has compiled, as often as it did."""
    lines = (source / "build" / ".ninja_log").read_text().splitlines()
    return [fields[3] for line in lines if len(fields := line.split("\t")) > 3 and fields[3].endswith(".o")]


def steps(record: dict[str, Any]) -> dict[str, bool]:
    return {step["name"]: step["skipped"] for step in record["steps"]}


@pytest.mark.parametrize(("layout", "manager"), [("setuptools", "venv"), ("scikit", "uv")])
def test_from_a_repository_to_an_import(
    builder: Builder, repositories: dict[str, Path], layout: str, manager: str
) -> None:
    arguments = ["--repo", str(repositories[layout]), "--ref", "v2.99", "--dir", "my tørch", "--env-manager", manager]
    record = builder.record(*arguments)
    source = builder.folder / "my tørch" / "source"
    assert record["status"] == "finished"
    assert not any(steps(record).values())
    assert record["commit"] == git(repositories[layout], "rev-parse", "v2.99")
    proof = record["proof"]
    assert (proof["version"], proof["debug"]) == ("2.99.0a0", True)
    assert Path(proof["file"]) == source / "torch" / "__init__.py"
    names = {Path(library["path"]).name.partition(".")[0]: library["has_dwarf"] for library in proof["libraries"]}
    assert names == {"libc10": True, "libtorch_cpu": True, "_C": True}
    assert proof["breakpoint"].endswith("csrc/module.cpp:16")
    added = subprocess.check_output(
        [record["python"], "-c", "import torch; print(torch.add(2, 3))"], cwd="/", text=True
    )
    assert added == "5\n"
    assert sorted(set(compiled(source))) == sorted(compiled(source))
    assert len(compiled(source)) == OBJECTS

    # Again: nothing is done twice.
    again = builder.record(*arguments)
    assert [name for name, skipped in steps(again).items() if not skipped] == ["compile", "install", "prove"]
    assert len(compiled(source)) == OBJECTS

    # From the cache: everything that was compiled before is there.
    shutil.rmtree(source / "build")
    cached = builder.record(*arguments, "--from", "configure")["cache"]
    assert cached["misses"] == 0
    assert cached["hits"] == OBJECTS


def test_a_tree_that_is_there_is_built_as_it_is(builder: Builder) -> None:
    source = copy_tree(builder.folder / "tree", "setuptools")
    first = builder.record("--source", "tree", "--env-manager", "venv", "--stop-after", "configure", "--no-ccache")
    assert (first["status"], list(steps(first))[-1]) == ("stopped", "configure")
    assert (source / "build" / "build.ninja").is_file()
    assert not (source / "torch" / "lib").exists()
    target = builder.record("--source", "tree", "--env-manager", "venv", "--target", "c10", "--no-ccache")
    assert compiled(source) == ["CMakeFiles/c10.dir/c10/tensor.cpp.o"]
    assert target["target"] == "c10"
    variables = {each["name"]: each["value"] for each in target["variables"]}
    assert variables["DEBUG"] == "1"
    assert "CCACHE_MAXSIZE" not in variables


def test_a_feature_that_cmake_has_turned_off(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    done = builder("--source", "tree", "--env-manager", "uv", "--stop-after", "configure", "--set", "USE_SMALL=1")
    assert done.returncode == 0
    assert "USE_SMALL is on in your variables, and cmake has turned it off" in done.stderr


def test_other_variables_configure_again(builder: Builder) -> None:
    source = copy_tree(builder.folder / "tree", "setuptools")
    common = ["--source", "tree", "--env-manager", "venv", "--stop-after", "configure"]
    builder.record(*common)
    assert "CMAKE_BUILD_TYPE:STRING=Debug" in (source / "build" / "CMakeCache.txt").read_text()
    assert steps(builder.record(*common))["configure"]
    assert steps(builder.record(*common, "--jobs", "1"))["configure"]
    changed = builder.record(*common, "--set", "DEBUG=0")
    assert not steps(changed)["configure"]
    assert "CMAKE_BUILD_TYPE:STRING=Release" in (source / "build" / "CMakeCache.txt").read_text()


def test_a_failure_names_its_first_error_and_goes_on_when_it_is_mended(builder: Builder) -> None:
    source = copy_tree(builder.folder / "tree", "setuptools")
    good = (source / "csrc" / "kernel_two.cpp").read_text()
    (source / "csrc" / "kernel_two.cpp").write_text(good.replace("{{", "{{oops, "))
    arguments = ["--source", "tree", "--env-manager", "venv", "--stop-after", "compile"]
    failed = builder(*arguments)
    assert failed.returncode == 14
    assert "csrc/kernel_two.cpp:5" in failed.stdout
    assert "error: 'oops' was not declared in this scope" in failed.stdout.replace("‘", "'").replace("’", "'")
    assert "the same command again goes on from this step" in failed.stdout
    before = compiled(source)
    (source / "csrc" / "kernel_two.cpp").write_text(good)
    builder.record(*arguments)
    assert sorted(compiled(source)) == sorted({*before, *compiled(source)})
    assert len(compiled(source)) == OBJECTS


def test_out_of_memory_it_goes_on_with_fewer_compilers(builder: Builder) -> None:
    """A compiler that can't have a second one beside it, as where the kernel kills one of two."""
    source = copy_tree(builder.folder / "tree", "setuptools")
    compiler = builder.folder / "c++"
    alone = builder.folder / "alone"
    compiler.write_text(
        f"""#!/bin/sh
case "$*" in *csrc/*) ;; *) exec c++ "$@" ;; esac
if ! mkdir {alone} 2>/dev/null; then
    echo "c++: fatal error: Killed signal terminated program cc1plus" >&2
    exit 1
fi
trap 'rmdir {alone}' EXIT
sleep 0.3
c++ "$@"
"""
    )
    compiler.chmod(0o755)
    arguments = ["--source", "tree", "--env-manager", "uv", "--no-ccache", "--stop-after", "compile", "--jobs", "4"]
    done = builder(*arguments, "--set", f"CXX={compiler}", "--json")
    assert done.returncode == 0, done.stderr
    assert "out of memory with 4 compilers at a time: going on with 2" in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["jobs"] == 1
    assert len(compiled(source)) == OBJECTS


def test_killed_again_and_again_it_ends_right(builder: Builder, repositories: dict[str, Path]) -> None:
    """Whenever the whole group is killed: the next run goes on, and does nothing again that ninja had done."""
    arguments = ["--repo", str(repositories["setuptools"]), "--env-manager", "venv", "--no-ccache"]
    chance = random.Random(7)
    for round_number in range(30):
        process = builder.start(*arguments)
        time.sleep(chance.uniform(0.1, 2.5))
        os.killpg(process.pid, [signal.SIGKILL, signal.SIGINT, signal.SIGTERM][round_number % 3])
        process.communicate(timeout=60)
    record = builder.record(*arguments)
    assert record["status"] == "finished"
    objects = compiled(builder.folder / "pytorch-build" / "source")
    assert len(objects) == len(set(objects)) == OBJECTS
    builds = builder.folder / "state" / "builds"
    assert [path.name for path in builds.glob("*.json")] == [f"{record['identifier']}.json"]
    assert json.loads((builds / f"{record['identifier']}.json").read_text())["python"] == record["python"]


def test_what_a_killed_build_leaves_running_is_ended(builder: Builder) -> None:
    source = copy_tree(builder.folder / "tree", "setuptools")
    compiler = builder.folder / "c++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *kernel_two*) sleep 1000 ;; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    arguments = ["--source", "tree", "--env-manager", "uv", "--no-ccache", "--stop-after", "compile"]
    process = builder.start(*arguments, "--set", f"CXX={compiler}")
    deadline = time.monotonic() + 60
    while not sleepers(builder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(sleepers(builder)) == 1
    process.kill()
    process.communicate()
    assert len(sleepers(builder)) == 1
    compiler.write_text('#!/bin/sh\nexec c++ "$@"\n')
    builder.record(*arguments, "--set", f"CXX={compiler}")
    assert sleepers(builder) == []
    assert len(compiled(source)) == OBJECTS


def sleepers(builder: Builder) -> list[int]:
    """The processes of the build that sleep in the compiler's place."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.name() == "sleep" and str(builder.folder) in each.environ().get("TDBG_BUILD", ""):
                found.append(each.pid)
    return found


def test_a_polite_end_ends_all(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    compiler = builder.folder / "c++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *kernel_two*) sleep 1000 ;; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    arguments = ["--source", "tree", "--env-manager", "uv", "--no-ccache", "--stop-after", "compile"]
    process = builder.start(*arguments, "--set", f"CXX={compiler}")
    deadline = time.monotonic() + 60
    while not sleepers(builder) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert sleepers(builder) == []


def test_a_second_build_of_a_tree_is_refused(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    arguments = ["--source", "tree", "--env-manager", "venv", "--stop-after", "compile"]
    first = builder.start(*arguments)
    holder = builder.folder / "state" / "builds"
    deadline = time.monotonic() + 30
    while not list(holder.glob("*/holder.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    second = builder(*arguments)
    assert second.returncode == 14
    assert f"by process {first.pid}" in second.stderr
    first.communicate(timeout=200)
    assert first.returncode == 0


def test_the_script_of_a_dry_run_does_the_same(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    script = builder("--source", "tree", "--env-manager", "venv", "--dry-run")
    assert script.returncode == 0
    assert not (builder.folder / "pytorch-build").exists()
    (builder.folder / "build.sh").write_text(script.stdout)
    (builder.folder / "state" / "builds").mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["sh", "build.sh"], cwd=builder.folder, env=builder.environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{builder.folder / 'tree' / 'torch' / '__init__.py'} 2.99.0a0"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--profile", "debgu"], 2, "did you mean debug?"),
        (["--stop-after", "compiel"], 2, "did you mean compile?"),
        (["--env-manager", "vnev"], 2, "did you mean venv?"),
        (["--set", "MAX_JOBS=0"], 2, "above 0"),
        (["--set", "USE_CUDA=perhaps"], 2, "switched on or off"),
        (["--source", "nowhere"], 14, "is no directory"),
        (["--source", "."], 14, "neither setup.py"),
        (["--source", ".", "--stop-after", "clone"], 14, "neither setup.py"),
        (["--env-manager", "venv", "--repo", "nowhere", "--ref", "v1"], 14, "nowhere can't be read"),
        (["--set", "CXX=no-such-compiler"], 14, "there is no compiler no-such-compiler"),
        (["--env-manager", "venv", "--python-version", "3.99"], 14, "python3.99"),
    ],
)
def test_what_can_not_be_built(builder: Builder, arguments: list[str], code: int, said: str) -> None:
    done = builder(*arguments)
    assert done.returncode == code, done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr


def test_an_unknown_ref_has_suggestions(builder: Builder, repositories: dict[str, Path]) -> None:
    done = builder("--repo", str(repositories["setuptools"]), "--ref", "v2.98", "--env-manager", "venv")
    assert done.returncode == 14
    assert "has neither branch nor tag v2.98" in done.stderr
    assert "did you mean v2.99?" in done.stderr
    assert not (builder.folder / "pytorch-build").exists()


def test_what_is_not_ours_is_not_touched(builder: Builder, repositories: dict[str, Path]) -> None:
    for name in ("source", "env"):
        (builder.folder / name / name).mkdir(parents=True)
        (builder.folder / name / name / "mine.txt").write_text("mine")
        done = builder("--repo", str(repositories["setuptools"]), "--dir", name, "--env-manager", "venv")
        assert done.returncode == 14
        assert "is there already" in " ".join(done.stdout.split())
        assert (builder.folder / name / name / "mine.txt").read_text() == "mine"


def test_a_commit_that_a_submodules_host_has_lost(builder: Builder, repositories: dict[str, Path]) -> None:
    repository = builder.folder / "torch"
    shutil.copytree(repositories["setuptools"], repository)
    shutil.copytree(repositories["setuptools"].parent / "small", builder.folder / "small")
    git(repository, "submodule", "--quiet", "set-url", "third_party/small", str(builder.folder / "small"))
    git(repository, "update-index", "--cacheinfo", "160000,0123456789012345678901234567890123456789,third_party/small")
    git(repository, "commit", "--quiet", "-m", "moved", "-a")
    git(repository, "update-index", "--cacheinfo", "160000,0123456789012345678901234567890123456789,third_party/small")
    git(repository, "commit", "--quiet", "-m", "lost", "--allow-empty")
    done = builder("--repo", str(repository), "--env-manager", "venv")
    assert done.returncode == 14
    assert "no longer has the commit" in " ".join(done.stdout.split())
