"""What a look at a process costs: `tdbg attach` side by side with `pystack remote --native` on the same process.

Idle: a hook of autograd sleeps, with other threads. Kernel and MKL: in functions without unwind tables, beyond which
pystack does not come: it shows no native frame of that thread, and so has less to do.

The two take turns. Printed are the medians of both and of the pairs' ratios, and how long the process stood still for
tdbg.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IDLE = """
import sys, threading, time, torch
for _ in range(4):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def hook(gradient):
    open(sys.argv[1], "w").close()
    time.sleep(1000)
product = torch.ones(3, requires_grad=True) * 2
product.register_hook(hook)
product.sum().backward()
"""
BUSY = """
import sys, torch
x = torch.ones(1500, 1500)
open(sys.argv[1], "w").close()
while True:
    x.{}
"""


def seconds(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def compare(title: str, python: str, program: str, pairs: int, folder: Path) -> None:
    ready = folder / f"ready-{title}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["TDBG_STATE_DIR"] = str(folder / "state")
    # One busy thread: pystack keeps the process standing, and so has all processors for itself; tdbg lets it go on.
    process = subprocess.Popen([python, "-c", program, str(ready)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        while not ready.exists():
            time.sleep(0.05)
        bin_directory = Path(sys.executable).parent
        ours = [str(bin_directory / "tdbg"), "attach", str(process.pid)]
        theirs = [str(bin_directory / "pystack"), "remote", "--native", str(process.pid)]
        for command in (ours, theirs):
            seconds(command, environment)
        took = [(seconds(ours, environment), seconds(theirs, environment)) for _ in range(pairs)]
        told = subprocess.run([*ours, "--json"], env=environment, check=True, capture_output=True, text=True)
        record = json.loads(told.stdout)
        mine = sum(frame["kind"] == "native" for thread in record["threads"] for frame in thread["frames"])
        shown = subprocess.run(theirs, env=environment, check=True, capture_output=True, text=True).stdout.count("(C) ")
        print(
            f"{title:<7} tdbg attach {statistics.median(each for each, _ in took) * 1000:4.0f} ms, pystack "
            f"{statistics.median(each for _, each in took) * 1000:4.0f} ms: "
            f"{statistics.median(ours / theirs for ours, theirs in took):.2f} x; "
            f"{mine} native frames against {shown}; it stood still for {record['stopped']:.1f} ms",
            flush=True,
        )
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for title, program in (("idle", IDLE), ("kernel", BUSY.format("erfinv()")), ("MKL", BUSY.format("mm(x)"))):
            compare(title, options.python, program, options.pairs, Path(folder))


if __name__ == "__main__":
    main()
