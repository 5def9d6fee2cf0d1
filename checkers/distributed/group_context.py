"""Which operations a slice needs, besides those of its partitions, to follow members of groups.

What a member did between two events, and until when it is known, follows from operations that may
have nothing to do with a partition: polls above all. A slice gets few of them: where each process
stands in each chunk, and for each event of a group the one operation that decides about it. They
come without the records of other partitions.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from checkers import consumers, group_events, micro_ops
from checkers.columns import INVOKE, Columns
from checkers.group_events import EARLY_NS, MicroOps, Ops
from checkers.kernels.arrays import changes
from checkers.kernels.compact import Operations
from checkers.kernels.rows import I64, INFO, OK
from model.op import NEMESIS


class Context(NamedTuple):
    """What slices need of the operations of a chunk besides those of their partitions."""

    everywhere: I64
    """The operations that every slice needs."""
    operation: I64
    """A slice that has ``operation`` needs ``companion``, too."""
    companion: I64


def of_chunk(
    columns: Columns, operations: Operations, ended: I64, moments_ns: Sequence[int]
) -> Context:
    """Return what slices need of a chunk, whose operations are whole.

    ``ended`` are the operations that end in it, and ``moments_ns`` when processes began to act that
    were frozen, perhaps in other chunks.
    """
    is_mine = np.zeros(len(operations.first), dtype=np.bool_)
    is_mine[ended] = True
    operations = operations.only(is_mine)
    reports = consumers.reports_of(columns, operations)
    ops, micro = consumers.group_ops(operations, reports), reports.micro
    asks, unnamed = group_events.committing(ops, micro), _unnamed(ops, micro)
    rebalances = _of_kind(micro, *micro_ops.REBALANCES)
    begun = _Begun(columns, operations)
    _, awake = begun.at(np.array(moments_ns, dtype=np.int64))
    everywhere = (
        _setup(columns, operations), _standing(ops, asks), unnamed, rebalances, awake,
    )  # fmt: skip
    frozen = np.flatnonzero(ops.frozen_ns > EARLY_NS)
    place, awake = begun.at(ops.start_ns[frozen] + ops.frozen_ns[frozen] - EARLY_NS)
    commits = _of_kind(micro, micro_ops.COMMIT)
    in_doubt = np.flatnonzero(ops.polls & (ops.outcome == INFO))
    of_listeners = commits[ops.polls[commits] & ~ops.txn[commits]]
    acts = np.concatenate((of_listeners, rebalances, unnamed, in_doubt))
    bad = np.flatnonzero(ops.polls & (ops.outcome != OK))
    pairs = (
        (acts, group_events.reporting_before(ops.process, ops.polls)[acts]),
        (frozen[place], awake),
        _next(ops, _of_kind(micro, "assigned"), bad, "left"),
        _next(ops, commits[ops.txn[commits]], asks[ops.outcome[asks] == OK], "right"),
    )
    operation, companion = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return Context(ended[np.concatenate(everywhere)], ended[operation], ended[companion])


def moments_ns(columns: Columns) -> list[int]:
    """Return when processes began to act that were frozen at the end of a chunk."""
    rows = np.flatnonzero(columns.is_op(micro_ops.FREEZE))
    events = columns.event[rows]
    invoked = columns.type[events] == INVOKE
    frozen_ns = columns.op_offset[rows[invoked]] * 1_000_000
    until = columns.time_ns[events[invoked]] + frozen_ns - EARLY_NS
    found: list[int] = until[(frozen_ns > EARLY_NS) & (until > columns.time_ns[-1])].tolist()
    return found


class _Begun:
    """Finds the operation of the last event before a moment."""

    def __init__(self, columns: Columns, operations: Operations) -> None:
        self._rows = np.flatnonzero(columns.process != NEMESIS)
        self._time_ns = columns.time_ns[self._rows]
        self._operation = operations.of_events()

    def at(self, moments_ns: I64) -> tuple[I64, I64]:
        """Return which moments have an event before them, and its operation, if that ends here."""
        before = np.searchsorted(self._time_ns, moments_ns) - 1
        known = np.flatnonzero(before >= 0)
        found = self._operation[self._rows[before[known]]]
        return known[found >= 0], found[found >= 0]


def _setup(columns: Columns, operations: Operations) -> I64:
    """Return the operations that set a process up."""
    codes = [code for code, name in enumerate(columns.f_names) if name in micro_ops.SETUP]
    return np.flatnonzero(np.isin(operations.f_code, codes))


def _standing(ops: Ops, asks: I64) -> I64:
    """Return where each process stands in a chunk: its first and its last operation, its last poll,
    its last one that succeeded, its first one that did not, and its first transaction that
    committed offsets."""
    polls, ok = ops.polls, ops.outcome == OK
    first = [np.arange(len(ops.op)), np.flatnonzero(polls & ~ok), asks[ok[asks]]]
    last = [np.arange(len(ops.op)), np.flatnonzero(polls), np.flatnonzero(polls & ok)]
    found = [rows[_firsts(ops.process[rows])] for rows in first]
    found += [rows[::-1][_firsts(ops.process[rows][::-1])] for rows in last]
    return np.concatenate(found)


def _firsts(process: I64) -> I64:
    order = np.argsort(process, kind="stable")
    found: I64 = order[changes(process[order])]
    return found


def _of_kind(micro: MicroOps, *kinds: str) -> I64:
    is_kind = np.array([kind in kinds for kind in micro.kind], dtype=np.bool_)
    found: I64 = np.unique(micro.operation[is_kind])
    return found


def _unnamed(ops: Ops, micro: MicroOps) -> I64:
    """Return the operations with commits that may have been made of any partition."""
    count = np.bincount(micro.place, minlength=len(micro.kind)).tolist()
    found = [
        int(micro.operation[row])
        for row, kind in enumerate(micro.kind)
        if kind == micro_ops.COMMIT and group_events.is_unreported(ops, micro, row, count[row])
    ]
    return np.array(found, dtype=np.int64)


def _next(ops: Ops, of: I64, among: I64, side: Literal["left", "right"]) -> tuple[I64, I64]:
    """Return for some operations the next one of the same process among others, where there is one;
    from ``of`` itself on (``left``), or after it (``right``)."""
    order = among[np.lexsort((among, ops.process[among]))]
    size = len(ops.op) + 1
    codes = ops.process[order] * size + order
    place = np.searchsorted(codes, ops.process[of] * size + of, side)
    known = place < len(order)
    known[known] = ops.process[order[place[known]]] == ops.process[of[known]]
    return of[known], order[place[known]]
