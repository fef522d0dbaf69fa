"""Names of autograd nodes: as torch 2.13.0 has them, from entries of its derivatives.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbench_dbg.trace.autograd_nodes import forward_operators, node_name, read_forward_operators

FIXED = {"CopySlices", "CopyBackwards", "AccumulateGrad", "PyNode"}
DERIVATIVES = """\
# - name: commented.out(Tensor self) -> Tensor
- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  self: handle_r_to_c(self.scalar_type(), grad)
  other: handle_r_to_c(other.scalar_type(), maybe_multiply(grad, alpha.conj()))
  result: self_t + maybe_multiply(other_t, alpha)

- name: sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
  self: grad.expand_symint(self.sym_sizes())

- name: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
  self: handle_r_to_c(self.scalar_type(), grad)

- name: _log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
  self: _log_softmax_backward_data(grad, result, dim, self.scalar_type())

- name: nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> Tensor
  self: nll_loss_backward_symint(grad, self, target, weight, reduction, ignore_index, total_weight)
"""


@pytest.mark.parametrize(
    ("operator", "node"),
    [
        ("add.Tensor", "AddBackward"),
        ("addmm", "AddmmBackward"),
        ("_log_softmax", "LogSoftmaxBackward"),
        ("scatter_add", "ScatterAddBackward"),
        ("native_layer_norm", "NativeLayerNormBackward"),
        ("convolution_overrideable", "ConvolutionOverrideableBackward"),
        ("nll_loss2d_forward", "NllLoss2DBackward"),
        ("upsample_nearest1d.vec", "UpsampleNearest1DBackward"),
        ("threshold_backward", "ThresholdBackwardBackward"),
    ],
)
def test_node_name(operator: str, node: str) -> None:
    assert node_name(operator) == node


def test_nodes_of_one_name_are_numbered_in_the_order_of_the_file() -> None:
    operators = forward_operators(DERIVATIVES)
    assert {node: operator for node, operator in operators.items() if node not in FIXED} == {
        "AddBackward0": "aten::add.Tensor",
        "SumBackward0": "aten::sum",
        "AddBackward1": "aten::add.Scalar",
        "LogSoftmaxBackward0": "aten::_log_softmax",
        "NllLossBackward0": "aten::nll_loss_forward",
    }


def test_without_the_file_only_the_fixed_nodes_are_known(tmp_path: Path) -> None:
    assert set(read_forward_operators(tmp_path / "torch")) == FIXED


def test_the_file_is_where_the_wheel_puts_it(tmp_path: Path) -> None:
    directory = tmp_path / "torchgen" / "packaged" / "autograd"
    directory.mkdir(parents=True)
    (directory / "derivatives.yaml").write_text(DERIVATIVES)
    assert read_forward_operators(tmp_path / "torch")["SumBackward0"] == "aten::sum"
