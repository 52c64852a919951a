"""The graphs of the tasks for graph networks, torch-free."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..catalog.tasks import GRAPH_IMAGES
from ..home import shipped
from .images import digits, standardised

NEAREST = 5
"""Neighbours of an image in the graph of digits, before the edges count both ways."""


class Graph(NamedTuple):
    """An undirected graph: edges [E, 2] with each pair once, features [N, F] and labels [N] of its nodes, and
    of each class how many nodes training sees."""

    edges: NDArray[np.int64]
    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    shown: int

    def weights(self) -> NDArray[np.float32]:
        """[N, N] weight 1 / sqrt(degree degree') of each edge, where every node is its own neighbour too;
        arXiv:1609.02907, section 2."""
        n = len(self.labels)
        joined = np.eye(n)
        joined[self.edges[:, 0], self.edges[:, 1]] = joined[self.edges[:, 1], self.edges[:, 0]] = 1
        root = joined.sum(1) ** -0.5
        return (root[:, None] * joined * root).astype(np.float32)


@lru_cache
def karate() -> Graph:
    """Zachary's karate club (1977)."""
    return graph_of((shipped("assets") / "data" / "karate.csv").read_text())


def graph_of(text: str) -> Graph:
    """A graph from its edges, an empty line, and the labels of its nodes. A node's features say which node it
    is, with a mean square of 1."""
    edges, sides = text.split("\n\n")
    pairs = np.array([row.split(",") for row in edges.split()], np.int64)
    labels = np.array(sides.split(), np.int64)
    n = len(labels)
    return Graph(pairs, (np.eye(n) * n**0.5).astype(np.float32), labels, 4)


@lru_cache
def digits_graph() -> Graph:
    """The first digits, each joined with those whose pixels are nearest by Euclidean distance; of equals the
    earlier one is nearer."""
    n = GRAPH_IMAGES
    pixels = digits()[0][:n]
    squares = (pixels**2).sum(1)
    distance = squares[:, None] + squares - 2 * pixels @ pixels.T
    np.fill_diagonal(distance, np.iinfo(np.int64).max)
    nearest = distance.argsort(1, kind="stable")[:, :NEAREST]
    pairs = {(min(i, int(j)), max(i, int(j))) for i in range(n) for j in nearest[i]}
    features, labels, _ = standardised()
    return Graph(np.array(sorted(pairs)), features[:n], labels[:n], 5)


GRAPHS = {"karate": karate, "digits_graph": digits_graph}
