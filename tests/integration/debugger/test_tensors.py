"""The reader of tensors that runs inside gdb, held against torch itself: in the target's own process, on its memory."""

from __future__ import annotations

import subprocess

import pytest

from torchbench_dbg.paths import gdbinit_directory, inferior_directory

from ..interpreters import has_torch, require_torch

COMPARE = """
import ctypes, sys, warnings
sys.path[:0] = sys.argv[1:]
warnings.simplefilter("ignore")
import tdbg_tensors, tensor_layout, torch

reader = tdbg_tensors.TensorReader(ctypes.string_at, tensor_layout.measure(torch))

def expected(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    device = str(tensor.device)
    return f"Tensor(shape={list(tensor.shape)}, dtype={dtype}, device={device}, requires_grad={tensor.requires_grad})"

tensors = [torch.zeros(()), torch.zeros(0, 3), torch.zeros(1, 2, 3, 4, 5, 6, 7), torch.zeros(2, device="meta")]
leaf = torch.zeros(3, requires_grad=True)
tensors += [leaf, leaf * 2, leaf.detach(), (leaf * 2)[1:], torch.nn.Parameter(torch.zeros(2)), torch.eye(3).to_sparse()]
for name in sorted(vars(torch)):
    if isinstance(getattr(torch, name), torch.dtype):
        try:
            tensors.append(torch.empty(2, 3, dtype=getattr(torch, name)))
        except Exception:
            continue
for tensor in tensors:
    assert reader.text(tensor._cdata) == expected(tensor), (reader.text(tensor._cdata), expected(tensor))
print(len(tensors))
"""


@pytest.mark.parametrize("which", ["wheel", "debian"])
def test_every_tensor_reads_as_torch_says(which: str) -> None:
    python = require_torch() if which == "wheel" else "/usr/bin/python3"
    if not has_torch(python):
        pytest.skip("no python3-torch is installed")
    directories = [str(gdbinit_directory()), str(inferior_directory())]
    done = subprocess.run([python, "-c", COMPARE, *directories], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
