"""torchbench-dbg: what really runs when PyTorch runs."""

__version__ = "0.1.0"
