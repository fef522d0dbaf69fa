"""recipe.toml: what is read, and what is refused, with the key and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg import paths
from torchbench_dbg.errors import RecipeError
from torchbench_dbg.recipes import library
from torchbench_dbg.recipes.format import Command, line_of, read

from .samples import RECIPE, write


def test_a_recipe_is_read(tmp_path: Path) -> None:
    recipe = read(write(tmp_path / "sum"))
    assert (recipe.name, recipe.title, recipe.script, recipe.debuggers) == (
        "sum",
        "one and two",
        tmp_path / "sum" / "sum.py",
        "pdb",
    )
    assert recipe.stages[0].breaks == ("# here",)
    assert recipe.stages[0].commands == (Command(run="p a", note="It is one.", expect=("1",)),)
    assert line_of(recipe, "# here") == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'note = "It is one."',
            'note = "x"\nexpct = ["1"]',
            "stage 1, command 1, expct: there is no such key, did you mean expect?",
        ),
        ('debugger = "pdb"', 'debugger = "pbd"', "stage 1, debugger: 'pbd' is none of pdb, gdb, did you mean pdb?"),
        ('title = "one and two"', "", "title: it is missing; text is expected"),
        ('title = "one and two"', 'title = ""', "title: it is empty"),
        ('title = "one and two"', "title = 3", "title: text is expected, 3 found"),
        ('expect = ["1"]', 'expect = "1"', "stage 1, command 1, expect: a list of texts is expected"),
        ('expect = ["1"]', "expect = [1]", "stage 1, command 1, expect: a list of texts is expected"),
        ('expect = ["1"]', 'expect = ["("]', "stage 1, command 1, expect: '(' is no regular expression"),
        ('run = "p a"', 'run = "p a\\np b"', "stage 1, command 1, run: one line is expected"),
        ('teaches = "Sums."', 'teaches = "Sums."\nneeds = ["gppu"]', "needs: 'gppu' is none of gpu, did you mean gpu?"),
        ('breaks = ["# here"]', 'breaks = ["nowhere"]', "stage first, breaks: 0 lines of the script have 'nowhere'"),
        ('breaks = ["# here"]', 'breaks = ["a"]', "stage first, breaks: 2 lines of the script have 'a'"),
        ('script = "sum.py"', 'script = "../sum.py"', "script: sum.py is outside of the recipe's own folder"),
        ('script = "sum.py"', 'script = "other.py"', "other.py can't be read"),
        ("[[stage]]", "[stage]", "stage: [[stage]] is expected"),
        ("[[stage.command]]", "[stage.command]", "stage 1, command: [[command]] is expected"),
        ('title = "one and two"', "title = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in RECIPE
    file = write(tmp_path / "sum", RECIPE.replace(old, new, 1))
    with pytest.raises(RecipeError) as caught:
        read(file)
    assert str(file) in caught.value.message
    assert said in caught.value.message


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = write(tmp_path / "sum", RECIPE.replace("title =", "titel =").replace('run = "p a"', ""))
    with pytest.raises(RecipeError) as caught:
        read(file)
    for said in ("title: it is missing", "titel: there is no such key, did you mean title?", "run: it is missing"):
        assert said in caught.value.message


def test_tdbgs_own_recipes_are_right() -> None:
    names = {place.name for place in library.places(Path("/")) if place.read().title}
    assert names == {
        "add", "async-cuda", "crash", "custom-function", "dispatch-stub", "module-params", "optimizer-step",
        "protocols", "requires-grad", "retain-graph", "train-min",
    }  # fmt: skip


def test_each_stage_of_tdbgs_own_recipes_checks_something() -> None:
    for place in library.places(Path("/")):
        recipe = place.read()
        assert sum(len(command.expect) for stage in recipe.stages for command in stage.commands) >= 2, recipe.name
        assert recipe.then, recipe.name


def test_a_project_has_recipes_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / ".tdbg" / "recipes" / "sum")
    place = library.find("sum", tmp_path)
    assert (place.origin, place.project, place.read().title) == ("project", tmp_path, "one and two")
    assert library.find("add", tmp_path).origin == "tdbg"


def test_a_file_is_found_by_its_path_or_its_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "sum")
    assert library.find(str(file)).file == library.find(f"{tmp_path}/sum").file == file


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(RecipeError, match="there is no recipe train-mni, did you mean train-min"):
        library.find("train-mni")


def test_recipes_lie_beside_the_package() -> None:
    assert (paths.recipes_directory() / "add" / "recipe.toml").is_file()
