"""Where fields lie, by version."""

from __future__ import annotations

import pytest
import tdbg_layouts as layouts


@pytest.mark.parametrize(
    ("version", "keys", "requires_grad", "next_edges"),
    [
        ((1, 13), 184, 136, 96),
        ((2, 2), 184, 144, 96),
        ((2, 3), 176, 144, 96),
        ((2, 12), 176, 144, 96),
        ((2, 13), 168, 128, 88),
    ],
)
def test_places(version: tuple[int, int], keys: int, requires_grad: int, next_edges: int) -> None:
    found = layouts.layout_of(version)
    assert (found["keys"], found["requires_grad"], found["next_edges"]) == (keys, requires_grad, next_edges)


def test_all_versions_have_the_same_names() -> None:
    versions = [first for first, _ in layouts.CHANGES]
    assert versions == sorted(versions)
    assert len({frozenset(layouts.layout_of(version)) for version in versions}) == 1


def test_unknown_versions() -> None:
    assert layouts.layout_of(None) == {}
    assert layouts.layout_of((2, 99)) == layouts.layout_of(layouts.NEWEST)
    assert layouts.layout_of((1, 4)) == layouts.layout_of(layouts.OLDEST)
    assert [layouts.is_known(version) for version in (None, (1, 12), (2, 13), (2, 14))] == [False, False, True, False]
