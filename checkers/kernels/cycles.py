"""Cycles: transactions that depend on each other in a circle, by Adya's names and Jepsen's.

Two kinds of edges, in one pass: ``wr`` from a transaction to whoever read a record of it, ``ww``
from a transaction to the one whose record comes next in a key's log. Kafka orders reads by
isolation (nobody is given what is not yet committed), so a circle of ``wr`` alone cannot be. Writes
it never isolates: open transactions interleave in a log, and any circle with a ``ww`` can.

Whether there is a circle is answered in linear time, by strongly connected components; the search
for a short one to tell is inside one of them, where there surely is one.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.kernels.receipts import GaveUp
from checkers.kernels.rows import I64, UNKNOWN, Bools, Found, History, Rows

EDGES_MAX = 10_000_000
"""Above this the graph would take more memory than is left: the answer is unknown."""
STARTS = 8
"""Places in a component from which a short circle is looked for."""


class _Columns(NamedTuple):
    source: I64
    target: I64
    wr: Bools
    """Else it is a ``ww``."""
    key: I64
    value: I64
    """The value that was read, or the earlier of two neighbours."""
    next: I64
    """The later of two neighbours."""


class _Edges(Rows, _Columns):
    """One row per dependency, at most one of each kind between two transactions.

    Transactions have numbers; ``op`` of :func:`_edges` says which events they are.
    """

    __slots__ = ()


def kernel(history: History) -> list[Found]:
    """One finding for each component that has such a circle, with a short one as its witness:
    ``wr-cycle`` (reads alone), ``G0`` (writes alone) and ``G1c`` (both; an edge ``wr`` that lies
    on no circle of reads). ``folded`` counts the further transactions of the component.

    Raises :class:`GaveUp` above ``EDGES_MAX`` edges.
    """
    op, edges = _edges(history)
    edges = _inner(edges, len(op))
    if not len(edges.source):
        return []
    if len(edges.source) > EDGES_MAX:
        raise GaveUp(f"{len(edges.source):,} dependencies are more than {EDGES_MAX:,}")
    both = _components(edges, len(op))
    edges = edges.where(both[edges.source] == both[edges.target])
    reads = _components(edges.where(edges.wr), len(op))
    writes = _components(edges.where(~edges.wr), len(op))
    on_reads = edges.wr & (reads[edges.source] == reads[edges.target])
    on_writes = ~edges.wr & (writes[edges.source] == writes[edges.target])
    story = _Story(history, op)
    return [
        *(story.found("wr-cycle", c, c.wr) for c in _each(edges.where(on_reads), reads)),
        *(
            story.found("G1c", c, c.wr & (reads[c.source] != reads[c.target]))
            for c in _each(edges, both)
            if (c.wr & (reads[c.source] != reads[c.target])).any()
        ),
        *(story.found("G0", c, ~c.wr) for c in _each(edges.where(on_writes), writes)),
    ]


def _edges(history: History) -> tuple[I64, _Edges]:
    """The events that completed transactions which happened, and what joins them."""
    sends, polls = history.sends, history.polls
    happened = sends.txn & sends.accountable
    rows = np.flatnonzero(happened)
    if not len(rows):
        return rows, _Edges(rows, rows, happened[rows], rows, rows, rows)
    op = np.unique(sends.op[rows])

    theirs = np.flatnonzero(polls.txn & np.isin(polls.op, op) & (history.writer >= 0))
    theirs = theirs[happened[history.writer[theirs]]]
    source = np.searchsorted(op, sends.op[history.writer[theirs]])
    target = np.searchsorted(op, polls.op[theirs])
    key, value = history.poll_key[theirs], polls.value[theirs]
    read = _Edges(source, target, np.ones(len(theirs), np.bool_), key, value, value)

    offset = sends.offset[rows]
    if (offset == UNKNOWN).any():
        offset = np.where(offset == UNKNOWN, _read_at(history)[rows], offset)
    placed = np.flatnonzero(offset != UNKNOWN)
    order = placed[np.lexsort((offset[placed], history.send_key[rows[placed]]))]
    key, value = history.send_key[rows[order]], sends.value[rows[order]]
    writer = np.searchsorted(op, sends.op[rows[order]])
    same = np.flatnonzero(key[1:] == key[:-1])
    written_next = _Edges(
        writer[same],
        writer[same + 1],
        np.zeros(len(same), np.bool_),
        key[same],
        value[same],
        value[same + 1],
    )
    columns: Any = zip(read, written_next, strict=True)
    edges = _Edges(*map(np.concatenate, columns))
    edges = edges.where(edges.source != edges.target)
    pairs = (edges.source * len(op) + edges.target) * 2 + edges.wr
    return op, edges.where(np.unique(pairs, return_index=True)[1])


def _read_at(history: History) -> I64:
    """Of each row of ``sends``: the offset at which its record was first read; UNKNOWN if it was
    not."""
    offset = np.full(len(history.sends.op), UNKNOWN)
    rows = np.flatnonzero(history.writer >= 0)[::-1]
    offset[history.writer[rows]] = history.polls.offset[rows]
    return offset


def _inner(edges: _Edges, count: int) -> _Edges:
    """Without those that begin where none ends, or end where none begins: on no circle."""
    enters, leaves = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    enters[edges.target] = leaves[edges.source] = True
    return edges.where(enters[edges.source] & leaves[edges.target])


def _components(edges: _Edges, count: int) -> I64:
    """Of each transaction: the number of its strongly connected component."""
    from rustworkx import PyDiGraph, strongly_connected_components

    names, place = np.unique(np.concatenate((edges.source, edges.target)), return_inverse=True)
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    graph: PyDiGraph[None, None] = PyDiGraph()
    graph.extend_from_edge_list(list(zip(source.tolist(), target.tolist(), strict=True)))
    component = np.arange(count)
    for members in strongly_connected_components(graph):
        component[names[members]] = names[members[0]]
    return component


def _each(edges: _Edges, component: I64) -> Iterator[_Edges]:
    """The edges of each component, all of them with both ends inside."""
    order = np.argsort(component[edges.source], kind="stable")
    numbers = component[edges.source[order]]
    for rows in np.split(order, np.flatnonzero(np.diff(numbers)) + 1):
        if len(rows):
            yield edges.where(rows)


class _Story:
    """Tells circles."""

    def __init__(self, history: History, op: I64) -> None:
        self._history, self._op = history, op

    def found(self, anomaly: str, edges: _Edges, through: Bools) -> Found:
        """A short circle ``through`` one of these edges, of a component's."""
        circle = _shortest(edges, np.flatnonzero(through).tolist())
        steps = [self._step(edges, row) for row in circle]
        members = len(np.unique(edges.source))
        return Found(
            anomaly=anomaly,
            ops=tuple(self._op[edges.source[circle]].tolist()),
            why="; ".join(steps) + ": a circle",
            folded=members - len(circle),
        )

    def _step(self, edges: _Edges, row: int) -> str:
        key = self._history.keys[edges.key[row]]
        source, target = self._op[edges.source[row]], self._op[edges.target[row]]
        if edges.wr[row]:
            return f"transaction {target} read value {edges.value[row]} of {key} from {source}"
        return (
            f"value {edges.next[row]} of transaction {target} follows value {edges.value[row]} of"
            f" {source} in {key}"
        )


def _shortest(edges: _Edges, through: Sequence[int]) -> list[int]:
    """The rows of a circle, the shortest of those looked at, from one of ``through`` on."""
    leaving: dict[int, list[int]] = {}
    source, target = edges.source.tolist(), edges.target.tolist()
    for row, node in enumerate(source):
        leaving.setdefault(node, []).append(row)
    circles = [[row, *_path(target[row], source[row], leaving, target)] for row in through[:STARTS]]
    return min(circles, key=len)


def _path(begin: int, end: int, leaving: dict[int, list[int]], target: Sequence[int]) -> list[int]:
    """The rows of a shortest path; there is one, as both are of one component."""
    came: dict[int, int] = {}
    waiting = deque([begin])
    before = {begin: begin}
    while end not in before:
        node = waiting.popleft()
        for row in leaving[node]:
            if target[row] not in before:
                before[target[row]], came[target[row]] = node, row
                waiting.append(target[row])
    rows: list[int] = []
    while end != begin:
        rows.append(came[end])
        end = before[end]
    return rows[::-1]
