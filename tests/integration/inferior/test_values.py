"""What the inferior says of results: descriptions and digests; and that a warm-up changes none of it."""

from __future__ import annotations

import pytest

from .host import FAKE, Host, result, run


def test_warm_up_leaves_no_trace_in_the_traced_run(torch_python: str) -> None:
    # In place, global settings, random numbers: all as in a run that is the first.
    expression = (
        "a.add_(1); torch.set_grad_enabled(not torch.is_grad_enabled())\n"
        "torch.set_default_dtype(torch.float64)\n"
        "import random\n(a, torch.randn(2), random.random(), torch.is_grad_enabled())"
    )
    warm, cold = (result(torch_python, expression, cold=cold) for cold in (False, True))
    assert warm == cold


def test_plain_and_traced_runs_are_equal_to_the_bit(torch_python: str) -> None:
    expression = "y = F.dropout(x @ w); y.sum().backward(); y"
    traced, plain = (result(torch_python, expression, plain=plain) for plain in (False, True))
    assert traced == plain
    assert traced["grad_digest"] is not None


def test_digests_differ_when_one_bit_does(torch_python: str) -> None:
    expressions = ["a", "a + 0", "a.t()", "a.double()", "a[0]", "a.view(16)", "-a"]
    digests = [result(torch_python, expression)["digest"] for expression in expressions]
    assert digests[0] == digests[1]
    assert len(set(digests)) == len(expressions) - 1
    assert result(torch_python, "a.mul_(2); None")["names_digest"] != result(torch_python, "None")["names_digest"]


@pytest.mark.parametrize(
    "expression",
    [
        "torch.randn(3, dtype=torch.complex64).conj()",
        "a > 0",
        "a.bfloat16()",
        "a.to_sparse()",
        "torch.quantize_per_tensor(a, 0.1, 3, torch.quint8)",
        "torch.quantize_per_channel(a, torch.ones(4), torch.zeros(4), 0, torch.qint8)",
        "torch.empty(3, device='meta')",
        "torch.empty(0)",
        "torch.tensor(1.5)",
        "[a, {'b': b}, (1, 'x', None)]",
        "nn.Linear(2, 2)",
        "a.sort()",
        "torch.nested.nested_tensor([a, b[:2]])",
        "type('Mine', (torch.Tensor,), {'__torch_function__': classmethod(lambda *_, **__: 1 / 0)})(a)",
        "torch.eye(2).to_sparse_csr()",
    ],
)
def test_every_kind_of_value_has_a_digest(torch_python: str, expression: str) -> None:
    first = result(torch_python, expression)
    assert first["digest"] is not None
    assert len(first["repr"]) <= 300
    assert first["digest"] == result(torch_python, expression, plain=True)["digest"]


def test_a_broken_repr_is_reported_in_its_place(fake_python: str) -> None:
    setup = "class Broken:\n    def __repr__(self): raise OSError('no')\n"
    event = run(fake_python, FAKE, expression="Broken()", setup=setup)
    assert event["result"]["repr"] == "<unprintable: OSError>"
    assert event["result"]["digest"] is None


@pytest.mark.parametrize(
    ("dtype", "description"),
    [
        ("bfloat16", "bfloat16 randn 4x4 cpu requires_grad"),
        ("complex64", "complex64 randn 4x4 cpu requires_grad"),
        ("int64", "int64 randint(0, 10) 4x4 cpu"),
        ("uint8", "uint8 randint(0, 10) 4x4 cpu"),
        ("bool", "bool randint(0, 2) 4x4 cpu"),
    ],
)
def test_the_names_follow_the_dtype(torch_python: str, dtype: str, description: str) -> None:
    with Host(python=torch_python, config={"expression": "x.dtype", "dtype": dtype}) as host:
        assert host.run()["result"]["repr"] == f"torch.{dtype}"
        assert {entry["name"]: entry["description"] for entry in host.events[2]["names"]}["x"] == description
