"""`tdbg run` on recipes of one's own: red, slow, interrupted, not trusted, and handed over to a person."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from torchbench_dbg.errors import InferiorTimeout, RecipeError, RecipeFailed

from ..trace.conftest import Tdbg
from .conftest import stage

pytestmark = pytest.mark.integration
Write = Callable[..., Path]
PDB = stage("pdb", ("continue", "here"), ("p a + b", "^3$"), breaks='["# here"]')


def at_a_terminal(tdbg: Tdbg, *arguments: str) -> pexpect.spawn:
    command, *rest = tdbg.command(*arguments)
    environment = {**tdbg.environment, "TERM": "xterm", "NO_COLOR": "1"}
    return pexpect.spawn(
        command, rest, env=environment, cwd=str(tdbg.folder), timeout=90, encoding="utf-8", dimensions=(40, 120)
    )


def test_a_recipe_of_ones_own_is_played_kept_and_shown_again(tdbg: Tdbg, recipe: Write) -> None:
    file = recipe(PDB)
    done = tdbg("run", "mine", "--yes", "-o", "out.json")
    assert done.returncode == 0, done.stderr
    for line in ("$ python -m pdb sum.py", "(Pdb) break sum.py:4", "(Pdb) p a + b", "green: 3 of 3 expectations met"):
        assert line in done.stdout
    assert json.loads((tdbg.folder / "out.json").read_text())["status"] == "green"
    shown = tdbg("show", "last").stdout
    assert done.stdout.partition("$ python")[2] == shown.partition("$ python")[2]
    assert tdbg("run", str(file), "--yes", "--json").returncode == 0


def test_a_broken_recipe_is_red_and_says_what_was_printed(tdbg: Tdbg, recipe: Write) -> None:
    recipe(stage("pdb", ("p 1 + 1", "^3$"), ("p 5", "5")))
    done = tdbg("run", "mine", "--yes")
    assert done.returncode == RecipeFailed.exit_code
    assert "(Pdb) p 1 + 1\n2\n✗ not printed: ^3$\n" in done.stdout
    assert "stage only: 'p 1 + 1' did not print '^3$'" in done.stdout
    assert "p 5" not in done.stdout
    assert tdbg.survivors() == []


def test_a_program_that_ends_too_early_is_red(tdbg: Tdbg, recipe: Write) -> None:
    recipe(stage("pdb", ("continue", "sum 3"), ("p a", "1")))
    done = tdbg("run", "mine", "--yes")
    assert done.returncode == RecipeFailed.exit_code
    assert "'p a' can't be typed, the program has ended" in done.stdout


def test_a_debugger_that_hangs_ends_with_the_time(tdbg: Tdbg, recipe: Write) -> None:
    recipe(stage("pdb", ("continue", "never")), script="import time\nprint('before', flush=True)\ntime.sleep(600)\n")
    done = tdbg("run", "mine", "--yes", "--timeout", "3")
    assert done.returncode == InferiorTimeout.exit_code
    assert "pdb gave no prompt within 3 s. It had printed: before" in done.stdout
    assert tdbg.survivors() == []


@pytest.mark.parametrize("debugger", ["pdb", "gdb"])
def test_ctrl_c_leaves_nothing_running(tdbg: Tdbg, recipe: Write, debugger: str) -> None:
    mark = "open('running', 'w').close()\nimport time\ntime.sleep(600)\n"
    file = recipe(stage(debugger, ("continue" if debugger == "pdb" else "run", None)), script=mark)
    child = at_a_terminal(tdbg, "run", "mine", "--yes")
    deadline = time.monotonic() + 60
    while not (file.parent / "running").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "interrupted" in child.before
    assert tdbg.survivors() == []


def test_a_recipe_that_is_not_trusted_does_not_run(tdbg: Tdbg, recipe: Write) -> None:
    file = recipe(PDB, script="open('ran', 'w')\nimport time\na = b = 1\ntime.sleep(0)  # here\n")
    done = tdbg("run", "mine")
    assert done.returncode == RecipeError.exit_code
    assert "not trusted" in done.stderr
    assert "--yes" in done.stderr
    assert tdbg("recipes", "show", "mine").returncode == 0
    assert not (file.parent / "ran").exists()


def test_a_trusted_directory_is_not_asked_about(tdbg: Tdbg, recipe: Write) -> None:
    recipe(PDB)
    assert tdbg("run", "mine", environment={"TDBG_TRUST": str(tdbg.folder)}).returncode == 0


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", RecipeError.exit_code)])
def test_at_a_terminal_it_asks(tdbg: Tdbg, recipe: Write, answer: str, code: int) -> None:
    recipe(PDB)
    child = at_a_terminal(tdbg, "run", "mine")
    child.expect_exact("Run it? [y/N]")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code


def test_the_terminal_is_handed_over_and_comes_back(tdbg: Tdbg, recipe: Write) -> None:
    recipe(
        stage("pdb", ("continue", "here"), breaks='["# here"]', name="first")
        + stage("pdb", ("p a", "^41$"), ("continue", "sum 43"), name="second")
    )
    child = at_a_terminal(tdbg, "run", "mine", "--yes", "--at", "first")
    child.expect_exact("after stage first, at pdb's prompt")
    child.expect_exact("(Pdb) ")
    child.sendline("!a = 41")
    child.expect_exact("(Pdb) ")
    child.send("half a comm\x1d")
    child.expect_exact("pdb second: a stage")
    child.expect_exact("green: 4 of 4 expectations met")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_the_terminal_of_gdb_is_handed_over_too(tdbg: Tdbg, recipe: Write) -> None:
    recipe(
        stage("pdb", ("continue", "here"), breaks='["# here"]', name="first")
        + stage("gdb", ("print 40 + 2", "42"), name="second")
        + stage("gdb", ("print $mine", "7$"), ("continue", None), name="third")
        + stage("pdb", ("continue", "sum 3"), name="fourth")
    )
    child = at_a_terminal(tdbg, "run", "mine", "--yes", "--at", "second")
    child.expect_exact("at gdb's prompt, the process is stopped")
    child.expect_exact("(gdb) ")
    child.sendline("set $mine = 7")
    child.expect_exact("(gdb) ")
    child.send("\x1d")
    child.expect_exact("green: ")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert tdbg.survivors() == []


def test_without_a_terminal_nothing_can_be_handed_over(tdbg: Tdbg, recipe: Write) -> None:
    recipe(PDB)
    done = tdbg("run", "mine", "--yes", "--interactive")
    assert done.returncode == 2
    assert "terminal" in done.stderr


def test_an_unknown_name_gets_the_nearest(tdbg: Tdbg) -> None:
    done = tdbg("run", "train-mni")
    assert done.returncode == RecipeError.exit_code
    assert "did you mean train-min?" in done.stderr


def test_a_bad_file_is_told_before_anything_runs(tdbg: Tdbg, recipe: Write) -> None:
    file = recipe(PDB.replace("expect", "expct"))
    done = tdbg("run", "mine", "--yes")
    assert done.returncode == RecipeError.exit_code
    assert "did you mean expect?" in done.stderr
    assert "did you mean expect?" in re.sub(r"\s+", " ", tdbg("recipes").stdout)
    assert file.exists()


def test_the_list_has_all_recipes(tdbg: Tdbg, recipe: Write) -> None:
    recipe(PDB)
    listed = {each["name"]: each for each in json.loads(tdbg("recipes", "--json").stdout)["recipes"]}
    assert listed["mine"]["origin"] == "project"
    assert listed["train-min"]["stages"] == ["pdb", "gdb", "pdb", "gdb"]
    assert "train-min" in tdbg("recipes").stdout


def test_cuda_sync_reaches_the_program_and_says_what_it_does(tdbg: Tdbg, recipe: Write) -> None:
    recipe(stage("pdb", ('p __import__("os").environ["CUDA_LAUNCH_BLOCKING"]', "1")))
    done = tdbg("run", "mine", "--yes", "--cuda-sync")
    assert done.returncode == 0
    assert "each kernel is waited for" in done.stderr


def test_a_target_that_is_not_there(tdbg: Tdbg, recipe: Write) -> None:
    recipe(PDB)
    done = tdbg("run", "mine", "--yes", "--python", "/nowhere/python")
    assert done.returncode == 4
