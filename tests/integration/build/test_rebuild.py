"""After a build: its list, its environment, what an edit costs, and building only that."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .conftest import Builder
from .test_build import OBJECTS, compiled
from .trees import copy_tree


def tdbg(builder: Builder, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchbench_dbg", *arguments],
        cwd=builder.folder,
        env={**builder.environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    builder = Builder(tmp_path_factory.mktemp("built"))
    copy_tree(builder.folder / "tree", "setuptools")
    builder.record("--source", "tree", "--env-manager", "venv", "--jobs", "1")
    return builder


def test_an_edit_costs_what_was_said(built: Builder) -> None:
    tree = built.folder / "tree"
    nothing = tdbg(built, "rebuild")
    assert nothing.returncode == 0
    assert "nothing has changed" in nothing.stderr
    with (tree / "csrc" / "kernel_two.cpp").open("a") as file:
        file.write("// edited\n")
    before = compiled(tree)
    said = tdbg(built, "rebuild", "--dry-run", "tree/csrc/kernel_two.cpp")
    # The object, the library, and the Python module that is linked to it.
    assert said.stderr.startswith("3 steps, about ")
    assert "changed: " in said.stderr
    assert "tree/csrc/kernel_two.cpp" in said.stderr
    assert compiled(tree) == before
    done = tdbg(built, "rebuild")
    assert done.returncode == 0, done.stdout
    assert compiled(tree)[len(before) :] == ["CMakeFiles/torch_cpu.dir/csrc/kernel_two.cpp.o"]
    assert "nothing has changed" in tdbg(built, "rebuild").stderr


def test_debug_information_for_one_file(built: Builder) -> None:
    done = tdbg(built, "rebuild", "--debinfo", "tree/csrc/kernel_one.cpp", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    variables = {each["name"]: each["value"] for each in record["variables"]}
    assert variables["USE_CUSTOM_DEBINFO"] == "csrc/kernel_one.cpp"
    assert [step["name"] for step in record["steps"]] == ["configure", "compile"]
    assert not record["steps"][0]["skipped"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rebuild", "tree/csrc/kernel_tow.cpp"], "did you mean"),
        (["rebuild", "--debinfo", "/etc/hostname"], "it is not in"),
        (["rebuild", "--build", "nothing-like-it"], "is no build"),
        (["env", "--build", "nothing-like-it"], "tdbg builds lists them"),
    ],
)
def test_what_is_not_there(built: Builder, arguments: list[str], said: str) -> None:
    done = tdbg(built, *arguments)
    assert done.returncode == 14
    assert said in " ".join(done.stderr.split())


def test_the_list_and_the_environment(built: Builder) -> None:
    (listed,) = json.loads(tdbg(built, "builds", "--json").stdout)
    assert (listed["finished"], listed["profile"]) == (True, "debug")
    assert listed["identifier"] in tdbg(built, "builds").stdout
    exports = tdbg(built, "env").stdout
    script = f"{exports}\npython -c 'import sys, torch; print(sys.prefix, torch.add(1, 2))'"
    shown = subprocess.check_output(["sh", "-c", script], text=True, cwd="/", env=built.environment)
    assert shown == f"{built.folder / 'pytorch-build' / 'env'} 3\n"
    program = built.folder / "shell"
    program.write_text("#!/bin/sh\ncommand -v python\npwd\n")
    program.chmod(0o755)
    entered = tdbg(built, "env", "--shell", SHELL=str(program))
    assert entered.stdout.splitlines() == [listed["python"], str(built.folder / "tree")]


def test_resume_goes_on_with_what_was_asked(builder: Builder) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    builder.record("--source", "tree", "--env-manager", "uv", "--stop-after", "configure", "--set", "DEBUG=0")
    elsewhere = builder.folder / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [*builder.command("--resume", "--json")],
        cwd=elsewhere,
        env=builder.environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=200,
    )
    record = json.loads(done.stdout)
    assert record["status"] == "finished"
    assert record["proof"]["debug"] is False
    assert [step["skipped"] for step in record["steps"]][:4] == [True] * 4
    assert len(compiled(builder.folder / "tree")) == OBJECTS


def test_no_build_yet(builder: Builder) -> None:
    assert "no builds yet" in tdbg(builder, "builds").stderr
    for command in (["rebuild"], ["env"], ["build", "--resume"]):
        done = tdbg(builder, *command)
        assert done.returncode == 14
        assert "there is no build yet" in done.stderr
    assert os.listdir(builder.folder) in ([], ["config"], ["state"])
