"""Cycles: transactions that depend on each other in a circle, by the names of Adya and Jepsen.

There are two kinds of edges: ``wr`` from a transaction to each one that read a record of it, ``ww``
from a transaction to the one whose record comes next in a partition's log. Kafka isolates reads (no
reader receives what is not yet committed), so a cycle of ``wr`` alone is illegal. It never isolates
writes: open transactions interleave in a log, so a cycle with a ``ww`` is legal.

Strongly connected components show in linear time whether there is a cycle. The search for a short
one to report runs inside one of them, where there certainly is one.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from checkers.kernels.arrays import changes, is_in, order_within, places
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


class Edges(Rows, _Columns):
    """One row per dependency between two transactions, which are named by the events that ended
    them."""

    __slots__ = ()


NO_EDGES = Edges(*(np.zeros(0, np.bool_ if f == "wr" else np.int64) for f in Edges._fields))


class Several(NamedTuple):
    """Components of which only the first is reported."""

    first: int
    """The first transaction of the first component."""
    found: Found
    components: int


class Cycles(NamedTuple):
    """The cycles among some transactions, which no cycle leaves."""

    reads: Sequence[tuple[int, Found]] = ()
    """A ``wr-cycle`` of each component, after its first transaction."""
    both: Several | None = None
    writes: Several | None = None


def kernel(history: History) -> list[Found]:
    """Find ``wr-cycle``, ``G0`` and ``G1c``.

    There is a ``wr-cycle`` (reads alone) for each component that has one; ``folded`` counts how
    many further transactions it has. ``G0`` (writes alone) and ``G1c`` (both: an edge ``wr`` that
    is on no cycle of reads) are always legal, and there is at most one finding of each; ``folded``
    counts further components.

    Raises :class:`GaveUp` above ``EDGES_MAX`` edges that could be on a cycle.
    """
    op = transactions(history)
    return concluded([among(op, edges(history), history.keys)]) if len(op) else []


def concluded(parts: Iterable[Cycles]) -> list[Found]:
    """Return the findings about a history whose transactions were examined in parts."""
    parts = list(parts)
    reads = sorted((each for part in parts for each in part.reads), key=itemgetter(0))
    return [
        *(found for _, found in reads),
        *_once(part.both for part in parts),
        *_once(part.writes for part in parts),
    ]


def _once(parts: Iterable[Several | None]) -> Iterator[Found]:
    several = [part for part in parts if part is not None]
    if several:
        chosen = min(several, key=lambda part: part.first)
        yield replace(chosen.found, folded=sum(part.components for part in several) - 1)


def transactions(history: History) -> I64:
    """Return the transactions that happened and sent records, by the events that ended them."""
    sends = history.sends
    op = sends.op[sends.txn & sends.accountable]
    return op[changes(op)]


def edges(history: History) -> Edges:
    """Return the dependencies between transactions. The target of a ``wr`` is any transaction,
    though it may not have happened; all others are among :func:`transactions`."""
    sends, polls, writer = history.sends, history.polls, history.writer
    happened = sends.txn & sends.accountable
    theirs = np.flatnonzero(polls.txn & (writer >= 0))
    theirs = theirs[happened[writer[theirs]]]
    theirs = theirs[sends.op[writer[theirs]] != polls.op[theirs]]
    key, value = history.poll_key[theirs], polls.value[theirs]
    is_read = np.ones(len(theirs), np.bool_)
    read = Edges(sends.op[writer[theirs]], polls.op[theirs], is_read, key, value, value)

    rows = np.flatnonzero(happened)
    offset = sends.offset[rows]
    if (offset == UNKNOWN).any():
        offset = np.where(offset == UNKNOWN, _read_at(history)[rows], offset)
    placed = np.flatnonzero(offset != UNKNOWN)
    order = rows[placed[order_within(history.send_key[rows[placed]], offset[placed])]]
    op, key, value = (c.take(order) for c in (sends.op, history.send_key, sends.value))
    same = np.flatnonzero((key[1:] == key[:-1]) & (op[1:] != op[:-1]))
    is_read = np.zeros(len(same), np.bool_)
    written_next = Edges(op[same], op[same + 1], is_read, key[same], value[same], value[same + 1])
    if not len(theirs):
        return written_next
    columns: Any = zip(read, written_next, strict=True)
    return Edges(*map(np.concatenate, columns))


def among(op: I64, edges: Edges, keys: Sequence[str]) -> Cycles:
    """Return the cycles among the transactions ``op``, which are in order.

    Raises :class:`GaveUp` above ``EDGES_MAX`` edges that could be on a cycle.
    """
    if not len(op) or not len(edges.source):
        return Cycles()
    edges = edges.where(is_in(edges.target, op))
    source, target = places(op, edges.source), places(op, edges.target)
    edges = _inner(edges._replace(source=source, target=target), len(op))
    if not len(edges.source):
        return Cycles()
    edges = _distinct(edges, len(op))
    if len(edges.source) > EDGES_MAX:
        raise GaveUp(f"the history has {len(edges.source):,} dependencies, more than {EDGES_MAX:,}")
    both = _components(edges, len(op))
    edges = edges.where(both[edges.source] == both[edges.target])
    reads = _components(edges.where(edges.wr), len(op))
    writes = _components(edges.where(~edges.wr), len(op))
    on_reads = reads[edges.source] == reads[edges.target]
    on_writes = writes[edges.source] == writes[edges.target]
    story = _Story(op, keys)
    return Cycles(
        list(story.each("wr-cycle", edges.where(edges.wr & on_reads), reads)),
        story.several("G1c", edges, both, edges.wr & ~on_reads),
        story.several("G0", edges.where(~edges.wr & on_writes), writes),
    )


def _distinct(edges: Edges, count: int) -> Edges:
    """Return one edge of each kind between two transactions: that of the first value."""
    pairs = (edges.source * count + edges.target) * 2 + edges.wr
    order = np.lexsort((edges.value, edges.key, pairs))
    return edges.where(order[changes(pairs[order])])


def _read_at(history: History) -> I64:
    """Return for each row of ``sends`` the offset at which its record was first read; UNKNOWN if it
    was not."""
    offset = np.full(len(history.sends.op), UNKNOWN)
    rows = np.flatnonzero(history.writer >= 0)[::-1]
    offset[history.writer[rows]] = history.polls.offset[rows]
    return offset


def _inner(edges: Edges, count: int) -> Edges:
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


def _components(edges: Edges, count: int) -> I64:
    """Return for each transaction the first one of its strongly connected component."""
    from rustworkx import PyDiGraph, strongly_connected_components

    names, place = np.unique(np.concatenate((edges.source, edges.target)), return_inverse=True)
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    graph: PyDiGraph[None, None] = PyDiGraph()
    graph.extend_from_edge_list(list(zip(source.tolist(), target.tolist(), strict=True)))
    component = np.arange(count)
    for members in strongly_connected_components(graph):
        if len(members) > 1:
            component[names[members]] = names[min(members)]
    return component


class _Story:
    """Describes cycles."""

    def __init__(self, op: I64, keys: Sequence[str]) -> None:
        self._op, self._keys = op, keys

    def each(self, anomaly: str, edges: Edges, component: I64) -> Iterator[tuple[int, Found]]:
        """Yield a cycle of each component, from edges with both ends inside one."""
        edges = edges.where(np.argsort(component[edges.source], kind="stable"))
        for begin, end in zip(*groups(component[edges.source]), strict=True):
            mine = edges.where(np.arange(begin, end))
            circle = _shortest(mine, range(len(mine.source)))
            folded = len(np.unique(mine.source)) - len(circle)
            first = int(self._op[component[mine.source[0]]])
            yield first, self._found(anomaly, mine, circle, folded)

    def several(
        self, anomaly: str, edges: Edges, component: I64, through: Bools | None = None
    ) -> Several | None:
        """Return a cycle of the first component, with one of the edges ``through``."""
        through = np.ones(len(edges.source), np.bool_) if through is None else through
        components = np.unique(component[edges.source[through]])
        if not len(components):
            return None
        mine = component[edges.source] == components[0]
        inside = edges.where(mine)
        circle = _shortest(inside, np.flatnonzero(through[mine]).tolist())
        found = self._found(anomaly, inside, circle, 0)
        return Several(int(self._op[components[0]]), found, len(components))

    def _found(self, anomaly: str, edges: Edges, circle: list[int], folded: int) -> Found:
        return Found(
            anomaly=anomaly,
            ops=tuple(self._op[edges.source[circle]].tolist()),
            why="; ".join(self._step(edges, row) for row in circle)
            + ": these dependencies form a cycle",
            folded=folded,
        )

    def _step(self, edges: Edges, row: int) -> str:
        key = self._keys[edges.key[row]]
        source, target = self._op[edges.source[row]], self._op[edges.target[row]]
        if edges.wr[row]:
            return f"transaction {target} read value {edges.value[row]} of {key} from {source}"
        return (
            f"value {edges.next[row]} of transaction {target} follows value {edges.value[row]} of"
            f" {source} in {key}"
        )


def _shortest(edges: Edges, through: Sequence[int]) -> list[int]:
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
