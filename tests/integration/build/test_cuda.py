"""--cuda: looked at before the first step, on a real toolkit (CUDA 13.0 from PyPI), and no card."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from pathlib import Path

import pytest

from torchbench_dbg.build.cuda import Toolkit, find_toolkit, problems
from torchbench_dbg.build.tools import Tool, find_tool

from .conftest import Builder
from .trees import copy_tree


@pytest.fixture(scope="module")
def toolkit() -> Toolkit:
    specification = importlib.util.find_spec("nvidia.cu13")
    assert specification is not None
    assert specification.submodule_search_locations
    home = next(iter(specification.submodule_search_locations))
    found = find_toolkit({"CUDA_HOME": home, "PATH": "/usr/bin"}, Path("/nowhere"))
    assert found is not None
    return found


def told(
    toolkit: Toolkit | None, compiler: Tool | None, architectures: str | None = "9.0", **more: tuple[int, int]
) -> str:
    return "\n".join(f"{severity}: {what}" for severity, what, _ in problems(toolkit, compiler, architectures, **more))


def test_what_a_toolkit_says_of_itself(toolkit: Toolkit) -> None:
    assert toolkit.version == (13, 0)
    assert (toolkit.newest_gcc, toolkit.newest_clang) == (15, 20)


def test_the_newest_compiler_that_it_takes(toolkit: Toolkit) -> None:
    compiler = find_tool("c++", os.environ)
    assert compiler is not None
    assert "takes gcc up to" not in told(toolkit, dataclasses.replace(compiler, version=(15, 9)))
    newer = told(toolkit, dataclasses.replace(compiler, version=(16, 1)))
    assert f"fail: CUDA 13.0 takes gcc up to 15; {compiler.path} is 16" in newer


def test_a_c_library_that_older_toolkits_do_not_know(toolkit: Toolkit) -> None:
    older = dataclasses.replace(toolkit, version=(12, 8))
    assert "can't compile against glibc 2.41" in told(older, None, glibc=(2, 41))
    assert "glibc" not in told(older, None, glibc=(2, 36))
    assert "glibc" not in told(toolkit, None, glibc=(2, 42))


def test_architectures(toolkit: Toolkit) -> None:
    assert "no CUDA architecture" not in told(toolkit, None, "8.0;9.0+PTX 10.0a, Hopper")
    assert "fail: --arch sm_90: no CUDA architecture" in told(toolkit, None, "8.0;sm_90")


def test_no_toolkit_stops_the_build_before_its_first_step(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    monkeypatch.setenv("CUDA_HOME", str(builder.folder))
    done = builder("--source", "tree", "--env-manager", "venv", "--cuda")
    assert done.returncode == 14
    assert "there is no CUDA toolkit" in done.stderr
    assert "CUDA_HOME=" in done.stderr
    assert not (builder.folder / "pytorch-build").exists()


def test_with_a_toolkit_the_build_is_told_of_cuda(
    builder: Builder, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_tree(builder.folder / "tree", "setuptools")
    monkeypatch.setenv("CUDA_HOME", str(toolkit.directory))
    arguments = ["--source", "tree", "--env-manager", "uv", "--cuda", "--arch", "9.0", "--stop-after", "configure"]
    record = builder.record(*arguments)
    variables = {each["name"]: each["value"] for each in record["variables"]}
    assert (variables["USE_CUDA"], variables["TORCH_CUDA_ARCH_LIST"]) == ("1", "9.0")
    assert variables["CMAKE_CUDA_COMPILER_LAUNCHER"] == "ccache"
