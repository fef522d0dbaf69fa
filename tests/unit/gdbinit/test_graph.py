"""The walk over autograd nodes, in memory that is written here."""

from __future__ import annotations

import struct

import pytest
import tdbg_graph as graph

LAYOUT = {"next_edges": 88, "edge": 16, "variable": 464}


class Memory:
    """Nodes and their edges, as torch 2.13 lays them out."""

    def __init__(self, nodes: dict[int, list[tuple[int, int]]]) -> None:
        self.words: dict[int, int] = {}
        for number, (node, edges) in enumerate(nodes.items()):
            vector = 0x100000 + number * 0x1000
            self.words[node + 88], self.words[node + 96] = vector, vector + 16 * len(edges)
            for place, (target, slot) in enumerate(edges):
                self.words[vector + 16 * place], self.words[vector + 16 * place + 8] = target, slot

    def read(self, address: int, length: int) -> bytes:
        if address not in self.words:
            raise OSError(f"no memory at {address:#x}")
        return struct.pack("<Q", self.words[address])[:length]

    def walk(self, root: int) -> list[tuple[int, int, int, bool]]:
        reader = graph.GraphReader(self.read, LAYOUT)
        steps = reader.walk(root, (OSError, ValueError), lambda _: True)
        return [(step.level, step.edge.node, step.edge.input_number, step.is_again) for step in steps]


def test_a_tree() -> None:
    memory = Memory({0x1000: [(0x2000, 0), (0x3000, 1)], 0x2000: [(0, 0)], 0x3000: []})
    assert memory.walk(0x1000) == [
        (0, 0x1000, 0, False),
        (1, 0x2000, 0, False),
        (2, 0, 0, False),
        (1, 0x3000, 1, False),
    ]


def test_a_node_is_entered_once_even_in_a_cycle() -> None:
    memory = Memory({0x1000: [(0x2000, 0), (0x2000, 0)], 0x2000: [(0x1000, 0)]})
    assert [step[1:] for step in memory.walk(0x1000)] == [
        (0x1000, 0, False),
        (0x2000, 0, False),
        (0x1000, 0, True),
        (0x2000, 0, True),
    ]


def test_a_node_whose_memory_is_gone_has_no_edges() -> None:
    assert Memory({0x1000: [(0xDEAD, 0)]}).walk(0x1000)[-1] == (1, 0xDEAD, 0, False)


def test_a_large_graph_is_cut() -> None:
    memory = Memory({0x1000 * number: [(0x1000 * (number + 1), 0)] * 60 for number in range(1, 30)})
    reader = graph.GraphReader(memory.read, LAYOUT)
    with pytest.raises(graph.StopWalk, match="200 nodes are shown"):
        list(reader.walk(0x1000, (OSError,), lambda _: True))


@pytest.mark.parametrize(("begin", "end"), [(0x2000, 0x2007), (0x2000, 0x1000), (0, 1 << 60)])
def test_what_is_no_vector_has_no_edges(begin: int, end: int) -> None:
    memory = Memory({})
    memory.words = {0x1000 + 88: begin, 0x1000 + 96: end}
    with pytest.raises(ValueError, match="no list of edges"):
        graph.GraphReader(memory.read, LAYOUT).edges(0x1000)
