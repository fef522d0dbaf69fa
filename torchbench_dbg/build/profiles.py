"""The kinds of build, as the variables that PyTorch's own build reads (setup.py's first comment lists them)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`cmake_type`: the CMAKE_BUILD_TYPE that setup.py makes of the variables."""

    name: str
    meaning: str
    cmake_type: str
    variables: dict[str, str]


# What a CPU build can leave out without losing an operator that a debugger is pointed at.
_LEFT_OUT = (
    "USE_DISTRIBUTED USE_MKLDNN USE_FBGEMM USE_NNPACK USE_XNNPACK USE_KINETO USE_TENSORPIPE USE_GLOO USE_MPI USE_ITT "
    "BUILD_TEST"
).split()

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="debug",
            meaning="DEBUG=1: no optimisation, debug information for every file, assertions on",
            cmake_type="Debug",
            variables={"DEBUG": "1", "BUILD_TEST": "0"},
        ),
        Profile(
            name="minimal",
            meaning="debug, and without what a CPU can do without: the fewest files to compile",
            cmake_type="Debug",
            variables={"DEBUG": "1", **dict.fromkeys(_LEFT_OUT, "0")},
        ),
        Profile(
            name="release-debinfo",
            meaning="REL_WITH_DEB_INFO=1: optimised as a wheel, with debug information",
            cmake_type="RelWithDebInfo",
            variables={"REL_WITH_DEB_INFO": "1", "BUILD_TEST": "0"},
        ),
    )
}

# On top of a profile, with or without --cuda.
WITH_CUDA = {"USE_CUDA": "1"}
WITHOUT_CUDA = {"USE_CUDA": "0", "USE_ROCM": "0", "USE_XPU": "0"}
