"""Builds the extension with debug information: `python build.py DIRECTORY` prints the library's path."""

import sys
from pathlib import Path

from torch.utils.cpp_extension import load


def main() -> None:
    source = Path(__file__).with_name("tdbg_example.cpp")
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    load(
        name="tdbg_example",
        sources=[str(source)],
        extra_cflags=["-g", "-O0"],
        build_directory=str(directory),
        is_python_module=True,
    )
    print(directory / "tdbg_example.so")


if __name__ == "__main__":
    main()
