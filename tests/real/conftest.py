"""The real PyTorch: Debian's source package of 2.6.0 (suite trixie), which builds on Debian 12 with -dev packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = (
    "libcpuinfo-dev libfmt-dev libsleef-dev pybind11-dev nlohmann-json3-dev libflatbuffers-dev flatbuffers-compiler-dev "
    "libonnx-dev libprotobuf-dev protobuf-compiler libpsimd-dev libfxdiv-dev libpthreadpool-dev libfp16-dev libeigen3-dev "
    "libcpp-httplib-dev libopenblas-dev dpkg-dev ccache"
).split()


@pytest.fixture(scope="session")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh tree: a copy of $TDBG_PYTORCH_SOURCE, else fetched by apt from where this machine's packages are from."""
    folder = tmp_path_factory.mktemp("pytorch")
    tree = folder / "tree"
    if given := os.environ.get("TDBG_PYTORCH_SOURCE"):
        shutil.copytree(given, tree, symlinks=True, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        return tree
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES], check=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb-src {_archive()} trixie main\n")
    (folder / "lists" / "partial").mkdir(parents=True)
    apt = ["apt-get", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"]
    apt += ["-o", f"Dir::State::lists={folder / 'lists'}", "-o", "APT::Sandbox::User=root"]
    subprocess.run([*apt, "update", "-qq"], check=True)
    subprocess.run([*apt, "source", "--download-only", "-qq", "pytorch"], cwd=folder, check=True)
    (description,) = folder.glob("*.dsc")
    subprocess.run(["dpkg-source", "--no-check", "-x", str(description), str(tree)], check=True, cwd=folder)
    return tree


def _archive() -> str:
    """The address of the Debian archive that apt uses here."""
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        if file.is_file() and (
            found := re.search(r"^(?:deb\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(\S+)", file.read_text(), re.M)
        ):
            return found[1]
    raise LookupError("apt has no archive")
