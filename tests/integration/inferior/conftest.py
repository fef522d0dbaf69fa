"""Fixtures and helpers of the inferior's tests."""

from __future__ import annotations

import sys

import pytest

from ..interpreters import VERSIONS, find, require_torch


@pytest.fixture
def torch_python() -> str:
    return require_torch()


@pytest.fixture
def fake_python() -> str:
    """Any interpreter: torch is the stand-in."""
    return next((found for version in VERSIONS if (found := find(version))), sys.executable)
