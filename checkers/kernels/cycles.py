"""Cycles: transactions that depend on each other in a circle, by the names of Adya and Jepsen.

There are two kinds of edges: ``wr`` from a transaction to each one that read a record of it, ``ww``
from a transaction to the one whose record comes next in a partition's log. Kafka isolates reads (no
reader receives what is not yet committed), so a cycle of ``wr`` alone is illegal. It never isolates
writes: open transactions interleave in a log, so a cycle with a ``ww`` is legal.

Strongly connected components show in linear time whether there is a cycle. The search for a short
one to report runs inside one of them, where there certainly is one.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.rows import I64, UNKNOWN, Bools, Rows, groups

EDGES_MAX = 10_000_000
"""With more edges than this, the graph would take more memory than there is: the result is
unknown."""
STARTS = 8
"""Number of edges of a component from which a short cycle is searched."""


class _Columns(NamedTuple):
    source: I64
    target: I64
    wr: Bools
    """Whether it is a ``wr``; otherwise it is a ``ww``."""
    key: I64
    value: I64
    """The value that was read, or the earlier of two adjacent values."""
    next: I64
    """The later of two adjacent values."""


class _Edges(Rows, _Columns):
    """One row per dependency, at most one of each kind between two transactions.

    Transactions are numbered; ``op`` of :func:`_edges` holds their events.
    """

    __slots__ = ()


def kernel(history: History) -> list[Found]:
    """Find ``wr-cycle``, ``G0`` and ``G1c``.

    There is a ``wr-cycle`` (reads alone) for each component that has one; ``folded`` counts how
    many further transactions it has. ``G0`` (writes alone) and ``G1c`` (both: an edge ``wr`` that
    is on no cycle of reads) are always legal, and there is at most one finding of each; ``folded``
    counts further components.

    Raises :class:`GaveUp` above ``EDGES_MAX`` edges that could be on a cycle.
    """
    op, edges = _edges(history)
    edges = _inner(edges, len(op))
    if not len(edges.source):
        return []
    if len(edges.source) > EDGES_MAX:
        raise GaveUp(f"the history has {len(edges.source):,} dependencies, more than {EDGES_MAX:,}")
    both = _components(edges, len(op))
    edges = edges.where(both[edges.source] == both[edges.target])
    reads = _components(edges.where(edges.wr), len(op))
    writes = _components(edges.where(~edges.wr), len(op))
    on_reads = reads[edges.source] == reads[edges.target]
    on_writes = writes[edges.source] == writes[edges.target]
    story = _Story(history, op)
    return [
        *story.each("wr-cycle", edges.where(edges.wr & on_reads), reads),
        *story.once("G1c", edges, both, edges.wr & ~on_reads),
        *story.once("G0", edges.where(~edges.wr & on_writes), writes),
    ]


def _edges(history: History) -> tuple[I64, _Edges]:
    """Return the events that completed the transactions which happened, and the edges between
    these."""
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
    """Return for each row of ``sends`` the offset at which its record was first read; UNKNOWN if it
    was not."""
    offset = np.full(len(history.sends.op), UNKNOWN)
    rows = np.flatnonzero(history.writer >= 0)[::-1]
    offset[history.writer[rows]] = history.polls.offset[rows]
    return offset


def _inner(edges: _Edges, count: int) -> _Edges:
    """Drop most edges that are on no cycle.

    They are the edges from a transaction that no edge enters, to a transaction that no edge leaves,
    or over a gap. Transactions are numbered in the order of their ends. A cycle leads back over
    each place that it leads forward over; a place that no edge leads back over is a gap.
    """
    enters, leaves = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    enters[edges.target] = leaves[edges.source] = True
    edges = edges.where(enters[edges.source] & leaves[edges.target])
    back = edges.where(edges.source > edges.target)
    over = np.bincount(back.target, minlength=count) - np.bincount(back.source, minlength=count)
    stretch = np.cumsum(np.concatenate(([0], np.cumsum(over)[:-1] == 0)))
    return edges.where(stretch[edges.source] == stretch[edges.target])


def _components(edges: _Edges, count: int) -> I64:
    """Return for each transaction the number of its strongly connected component."""
    from rustworkx import PyDiGraph, strongly_connected_components

    names, place = np.unique(np.concatenate((edges.source, edges.target)), return_inverse=True)
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    graph: PyDiGraph[None, None] = PyDiGraph()
    graph.extend_from_edge_list(list(zip(source.tolist(), target.tolist(), strict=True)))
    component = np.arange(count)
    for members in strongly_connected_components(graph):
        if len(members) > 1:
            component[names[members]] = names[members[0]]
    return component


class _Story:
    """Describes cycles."""

    def __init__(self, history: History, op: I64) -> None:
        self._history, self._op = history, op

    def each(self, anomaly: str, edges: _Edges, component: I64) -> Iterator[Found]:
        """Yield a cycle of each component, from edges with both ends inside one."""
        edges = edges.where(np.argsort(component[edges.source], kind="stable"))
        for begin, end in zip(*groups(component[edges.source]), strict=True):
            mine = edges.where(np.arange(begin, end))
            circle = _shortest(mine, range(len(mine.source)))
            yield self._found(anomaly, mine, circle, len(np.unique(mine.source)) - len(circle))

    def once(
        self, anomaly: str, edges: _Edges, component: I64, through: Bools | None = None
    ) -> Iterator[Found]:
        """Yield a cycle of a single component, with one of the edges ``through``."""
        through = np.ones(len(edges.source), np.bool_) if through is None else through
        components = np.unique(component[edges.source[through]])
        if len(components):
            mine = component[edges.source] == components[0]
            inside = edges.where(mine)
            circle = _shortest(inside, np.flatnonzero(through[mine]).tolist())
            yield self._found(anomaly, inside, circle, len(components) - 1)

    def _found(self, anomaly: str, edges: _Edges, circle: list[int], folded: int) -> Found:
        return Found(
            anomaly=anomaly,
            ops=tuple(self._op[edges.source[circle]].tolist()),
            why="; ".join(self._step(edges, row) for row in circle)
            + ": these dependencies form a cycle",
            folded=folded,
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
    """Return the rows of a short cycle with one of the edges ``through``."""
    leaving: dict[int, list[int]] = {}
    source, target = edges.source.tolist(), edges.target.tolist()
    for row, node in enumerate(source):
        leaving.setdefault(node, []).append(row)
    circles = [[row, *_path(target[row], source[row], leaving, target)] for row in through[:STARTS]]
    return min(circles, key=len)


def _path(begin: int, end: int, leaving: dict[int, list[int]], target: Sequence[int]) -> list[int]:
    """Return the rows of a shortest path; there is one, as both ends are in one component."""
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
