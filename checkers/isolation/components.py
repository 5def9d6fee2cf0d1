"""Whether there are cycles of some class, in linear time: strongly connected components.

A walk without two anti-dependencies in a row is a walk in a graph with two states per vertex: a
dependency leads to state 0 from both states, and an anti-dependency from state 0 to state 1. A
component of that graph with more than one vertex shows such a closed walk, which rules out snapshot
isolation (Cerone and Gotsman, "Analysing Snapshot Isolation", 2018).
"""

from typing import Any

import numpy as np

from checkers.isolation.edges import Edges, Parts, joined
from checkers.isolation.specs import ANTI, Spec
from checkers.kernels.arrays import I64
from checkers.kernels.rows import Bools


def labels(source: Any, target: Any, count: int) -> I64:
    """Return for each of ``count`` vertices a number of its strongly connected component."""
    try:
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components
    except ImportError:  # a worker of Spark may have no more than numpy and Arrow
        return labels_by_paths(source, target, count)
    ones = np.ones(len(source), np.int8)
    matrix = coo_matrix((ones, (source, target)), shape=(count, count)).tocsr()
    matrix.data[:] = 1  # parallel edges were added up, and may have overflowed to no edge
    _, found = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(found, np.int64)


def labels_by_paths(source: Any, target: Any, count: int) -> I64:
    """Return the same as :func:`labels`, without SciPy: rustworkx takes some times as long."""
    from rustworkx import PyDiGraph, strongly_connected_components

    graph: Any = PyDiGraph(multigraph=True)
    graph.add_nodes_from(range(count))
    graph.extend_from_edge_list(list(zip(source.tolist(), target.tolist(), strict=True)))
    found = np.empty(count, np.int64)
    for number, members in enumerate(strongly_connected_components(graph)):
        found[members] = number
    return found


class Inner:
    """The part of a graph that is on cycles: the edges whose ends are in one component."""

    def __init__(self, parts: Parts, count: int) -> None:
        """Keep the inner part of a graph with ``count`` vertices."""
        component, found = np.zeros(0, np.int64), list[Edges]()
        if any(len(part.source) for part in parts):
            source, target = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
            component = labels(source, target, count)
            del source, target
            found = [
                part.chosen(np.flatnonzero(component[part.source] == component[part.target]))
                for part in parts
            ]
        kept = joined(found)
        self.vertices, place = np.unique(
            np.concatenate((kept.source, kept.target)), return_inverse=True
        )
        """The vertices on cycles, ascending; edges name them by their places here."""
        half = len(kept.source)
        kept = kept._replace(source=place[:half], target=place[half:])
        names = component[self.vertices] if half else self.vertices
        order = np.argsort(names[kept.source], kind="stable")
        self.edges = kept.where(order)
        """The inner edges, one component after another."""
        of_edge = names[self.edges.source]
        first = np.ones(half, np.bool_)
        first[1:] = of_edge[1:] != of_edge[:-1]
        self.begin = np.append(np.flatnonzero(first), half)
        """Where the edges of each component begin, and where the last ones end."""

    @property
    def count(self) -> int:
        """The number of components."""
        return len(self.begin) - 1

    def on_closed_walks(self, spec: Spec) -> Bools:
        """Return which edges are on a closed walk with the kinds and the rule of a class."""
        allowed = np.isin(self.edges.kind, sorted(spec.kinds))
        found = np.zeros(len(allowed), np.bool_)
        rows = np.flatnonzero(allowed)
        source, target = self.edges.source[rows], self.edges.target[rows]
        if not len(rows):
            return found
        count = len(self.vertices)
        if not spec.is_by_product:
            component = labels(source, target, count)
            found[rows] = component[source] == component[target]
            return found
        anti = np.isin(self.edges.kind[rows], ANTI)
        component = labels(
            np.concatenate((source, source[~anti] + count)),
            np.concatenate((np.where(anti, target + count, target), target[~anti])),
            2 * count,
        )
        after_anti = component[source + count] == component[target]
        found[rows] = component[source] == component[np.where(anti, target + count, target)]
        found[rows] |= ~anti & after_anti
        return found
