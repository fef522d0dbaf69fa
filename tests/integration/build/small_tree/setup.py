"""The way in of PyTorch up to 2.13: cmake by setup.py, steered by environment variables."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
RERUN_CMAKE = "--cmake" in sys.argv
CMAKE_ONLY = "--cmake-only" in sys.argv
sys.argv = [argument for argument in sys.argv if argument not in ("--cmake", "--cmake-only")]


def build_type():
    if os.environ.get("DEBUG") in ("1", "ON"):
        return "Debug"
    return "RelWithDebInfo" if os.environ.get("REL_WITH_DEB_INFO") in ("1", "ON") else "Release"


def build_deps():
    if not (ROOT / "third_party/small/include/small/small.h").exists():
        sys.exit("Could not find third_party/small: did you run 'git submodule update --init --recursive'?")
    build = ROOT / "build"
    if RERUN_CMAKE or not (build / "build.ninja").exists():
        forwarded = [f"-D{name}={value}" for name, value in os.environ.items() if name.startswith(("CMAKE_", "USE_"))]
        forwarded = [each for each in forwarded if not each.startswith("-DCMAKE_GENERATOR")]
        command = ["cmake", "-GNinja", f"-DCMAKE_BUILD_TYPE={build_type()}", f"-DPython_EXECUTABLE={sys.executable}"]
        subprocess.check_call([*command, *forwarded, "-S", str(ROOT), "-B", str(build)])
        print("-- ******** Summary ********")
        print("--   USE_SMALL             : OFF")  # the sources never have it
    if CMAKE_ONLY:
        print("Finished running cmake.")
        sys.exit()
    jobs = ["-j", os.environ["MAX_JOBS"]] if "MAX_JOBS" in os.environ else []
    subprocess.check_call(["cmake", "--build", str(build), "--target", "install", "--", *jobs])


class BuildPython(build_py):
    def run(self):
        debug = build_type() == "Debug"
        (ROOT / "torch/version.py").write_text(f"__version__ = {version!r}\ndebug = {debug}\ngit_version = 'Unknown'\n")
        super().run()


version = (ROOT / "version.txt").read_text().strip()
if not any(argument in ("egg_info", "dist_info", "clean") for argument in sys.argv):
    build_deps()
    (ROOT / "torch/version.py").write_text(
        f"__version__ = {version!r}\ndebug = {build_type() == 'Debug'}\ngit_version = 'Unknown'\n"
    )
setup(
    name="torch",
    version=version,
    packages=["torch"],
    package_data={"torch": ["*.so", "lib/*.so"]},
    cmdclass={"build_py": BuildPython},
)
