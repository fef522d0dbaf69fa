"""Which forward operator makes which autograd node, from the derivatives.yaml that the wheel ships (torchgen)."""

from __future__ import annotations

import collections
import re
from pathlib import Path

_ENTRY = re.compile(r"^- name: +(?P<operator>[\w.]+)\(", re.MULTILINE)
_OTHER_NODES = {
    "CopySlices": "aten::copy_ into a view",
    "CopyBackwards": "aten::copy_",
    "AccumulateGrad": "a leaf that requires grad",
    "PyNode": "a torch.autograd.Function",
}


def node_name(operator: str) -> str:
    """`MulBackward` of `mul`: the rule of torchgen/api/autograd.py and tools/autograd/load_derivatives.py."""
    camel_case = "".join(part.title() for part in operator.partition(".")[0].split("_"))
    return f"{camel_case}Backward".replace("ForwardBackward", "Backward")


def forward_operators(derivatives: str) -> dict[str, str]:
    """Node name -> operator (`MulBackward0` -> `aten::mul.Tensor`), from the text of derivatives.yaml.

    Nodes of one name are numbered in the order of the file.
    """
    counts: collections.Counter[str] = collections.Counter()
    operators = dict(_OTHER_NODES)
    for match in _ENTRY.finditer(derivatives):
        prefix = node_name(match["operator"])
        operators[f"{prefix}{counts[prefix]}"] = f"aten::{match['operator']}"
        counts[prefix] += 1
    return operators


def read_forward_operators(torch_directory: Path) -> dict[str, str]:
    """The same for an installed torch; only the fixed nodes where the file is not shipped."""
    path = torch_directory.parent / "torchgen" / "packaged" / "autograd" / "derivatives.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        text = ""
    return forward_operators(text)
