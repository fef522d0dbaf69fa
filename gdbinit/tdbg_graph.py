"""The graph that backward walks: nodes, and the edges to the next ones. Nothing here imports gdb.

Memory comes through `read(address, length) -> bytes`. It can be garbage and have cycles: each node is visited once,
and all counts are capped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Optional

Read = Callable[[int, int], bytes]
MOST_NODES = 200
MOST_EDGES = 64  # of one node
MOST_LEVELS = 40


class Edge(NamedTuple):
    """Of a node to the next: the gradient of this input of the node at an address goes there. Address 0: nowhere."""

    node: int
    input_number: int


class Step(NamedTuple):
    """One line of a walk. `is_again`: the node was shown before, and its edges with it."""

    level: int
    edge: Edge
    is_again: bool


class GraphReader:
    """Reads torch::autograd::Node (torch/csrc/autograd/function.h) and its edges (edge.h)."""

    def __init__(self, read: Read, layout: dict[str, int]) -> None:
        """`layout`: byte offsets by the names in tdbg_layouts."""
        self.read, self.layout = read, layout

    def edges(self, node: int) -> list[Edge]:
        """next_edges of a node: a vector. ValueError if it can be none."""
        vector = node + self.layout["next_edges"]
        begin, end = self._word(vector), self._word(vector + 8)
        count, rest = divmod(end - begin, self.layout["edge"])
        if rest or not 0 <= count <= 1 << 20:
            raise ValueError("no list of edges")
        found = []
        for place in range(begin, begin + min(count, MOST_EDGES) * self.layout["edge"], self.layout["edge"]):
            number = int.from_bytes(self.read(place + self.layout["edge"] - 8, 4), "little")
            found.append(Edge(self._word(place), number))
        return found

    def variable(self, node: int) -> int:
        """The TensorImpl that an AccumulateGrad adds gradients to."""
        return self._word(node + self.layout["variable"])

    def walk(self, root: int, errors: tuple, is_node: Callable[[int], Optional[bool]]) -> Iterator[Step]:
        """The graph as a tree, depth first, each node's edges once; MOST_NODES lines at most.

        `errors`: what reading may raise; such a node has no edges then, as one that is no node.
        """
        seen: set[int] = set()
        waiting = [(0, Edge(root, 0))]
        for _ in range(MOST_NODES):
            if not waiting:
                return
            level, edge = waiting.pop()
            is_again = edge.node in seen
            yield Step(level, edge, is_again)
            if is_again or not edge.node or level >= MOST_LEVELS or not is_node(edge.node):
                continue
            seen.add(edge.node)
            try:
                waiting.extend((level + 1, following) for following in reversed(self.edges(edge.node)))
            except errors:
                continue
        if waiting:
            raise StopWalk("%d nodes are shown, there are more" % MOST_NODES)

    def _word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")


class StopWalk(Exception):
    """The graph is larger than what is shown."""
