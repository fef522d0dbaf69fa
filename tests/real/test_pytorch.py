"""`tdbg build` on PyTorch 2.6.0: real cmake, ninja, ccache, compilers. Takes minutes: `make test-real`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# What Debian's tree needs, as its bundled copies of other projects are taken out.
SETTINGS = ("USE_SYSTEM_LIBS=ON", "ONNX_NAMESPACE=onnx", "CXXFLAGS=-I/usr", "BUILD_CUSTOM_PROTOBUF=OFF")


def build(pytorch: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    own = {"TDBG_STATE_DIR": str(folder / "state"), "CCACHE_DIR": str(folder / "ccache")}
    settings = [word for each in SETTINGS for word in ("--set", each)]
    command = [sys.executable, "-m", "torchbench_dbg", "build", "--source", str(pytorch), "--dir", str(folder / "work")]
    command += ["--env-manager", "venv", "--profile", "minimal", *settings, *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **own})
    assert done.returncode == 0
    return dict(json.loads(done.stdout))


@pytest.mark.timeout(3000)
def test_configure_then_c10_then_c10_out_of_the_cache(pytorch: Path, tmp_path: Path) -> None:
    configured = build(pytorch, tmp_path, "--stop-after", "configure")
    assert [step["name"] for step in configured["steps"]][-1] == "configure"
    cache = (pytorch / "build" / "CMakeCache.txt").read_text()
    assert "CMAKE_BUILD_TYPE:STRING=Debug" in cache
    first = build(pytorch, tmp_path, "--target", "c10")
    assert first["cache"]["misses"] > 50
    sections = subprocess.check_output(["readelf", "-S", str(pytorch / "build" / "lib" / "libc10.so")], text=True)
    assert ".debug_info" in sections
    shutil.rmtree(pytorch / "build")
    second = build(pytorch, tmp_path, "--target", "c10", "--from", "configure")
    assert second["cache"]["misses"] == 0
    assert second["cache"]["hits"] >= first["cache"]["misses"]
    print({name: record["cache"] for name, record in (("first", first), ("second", second))})
