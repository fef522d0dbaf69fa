"""Dispatch key sets in names, by the version of torch."""

from __future__ import annotations

import pytest
import tdbg_keys as keys


@pytest.mark.parametrize(
    ("version", "raw", "names"),
    [
        ((2, 13), 0x9400010001, ["CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"]),
        ((1, 13), 0x12800004001, ["CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"]),
        ((2, 13), 0x110003, ["CPU", "CUDA", "QuantizedCPU", "QuantizedCUDA"]),
        ((2, 13), 0x20001, ["FPGA"]),
        ((2, 13), 0b101, ["CPUBit", "HIPBit"]),
        ((2, 13), 1 << 16, ["Dense"]),
        ((2, 13), 1 << 63, ["bit 63"]),
        ((2, 13), 0, []),
    ],
)
def test_names(version: tuple[int, int], raw: int, names: list[str]) -> None:
    assert keys.table_of(version).names(raw) == names


def test_what_changed_between_versions() -> None:
    assert keys.table_of((2, 7)).functionalities[2] == "MAIA"
    assert "MAIA" in keys.table_of((2, 8)).backends
    assert keys.table_of((2, 0)).backends.index("Meta") == 10
    assert keys.table_of((2, 1)).backends[-1] == "Meta"
    assert ["SparseCsr" in keys.table_of((2, minor)).prefixes for minor in (2, 3)] == [False, True]


def test_an_unknown_version_gets_the_nearest_known_one() -> None:
    assert keys.table_of((3, 0)) == keys.table_of(keys.NEWEST)
    assert keys.table_of((1, 0)) == keys.table_of(keys.OLDEST)


def test_a_table_by_the_enumerations() -> None:
    backends = ["InvalidBit", "CPUBit", "MetaBit", "EndOfBackendKeys"]
    names = ["Undefined", "CatchAll", "Dense", "FPGA", "AutogradFunctionality", "EndOfFunctionalityKeys"]
    names += ["StartOfDenseBackends", "CPU", "Meta", "StartOfAutogradFunctionalityBackends"]
    table = keys.table_of_enumerations(backends, names)
    assert table.names(0b10101) == ["CPU", "AutogradCPU"]
    assert table.names(0b01010) == ["FPGA"]


def test_membership() -> None:
    table = keys.table_of((2, 13))
    assert table.has(0x9400800001, "Sparse")
    assert not table.has(0x9400010001, "Sparse")
    assert not table.has(0x9400010001, "SparseCsrCPU")
