"""For all tests: consoles write to the streams of the test that runs."""

from __future__ import annotations

import pytest

from torchbench_dbg import console


@pytest.fixture(autouse=True)
def fresh_consoles() -> None:
    console.configure()
