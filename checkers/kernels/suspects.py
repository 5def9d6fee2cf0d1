"""Suspects: the transactions that an anomaly of isolation may involve, seen from some partitions.

:mod:`checkers.kernels.isolation` needs all records of a transaction. A transaction of which nothing
was seen before it ended, in any partition, has no anomaly: it was certainly open until an event
before its end at most, unless one partition alone shows a later one. So partitions are examined on
their own, and isolation is checked among the suspects and what they depend on.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from checkers.kernels import isolation
from checkers.kernels.arrays import changes, distinct, is_in
from checkers.kernels.compact import AllSends
from checkers.kernels.history import History, Init
from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Sends
from checkers.kernels.steps import STABLE

_NONE = np.zeros(0, dtype=np.int64)


class Fence(NamedTuple):
    """A process whose transactional id another one took over."""

    process: int
    begin: int
    """The event after which its transactions are fenced by ``taken``, and then the last one before
    which they are."""
    end: int
    taken: int
    """The event at which the takeover was acknowledged."""


def fences(inits: tuple[Init, ...]) -> list[Fence]:
    """Return the takeovers of transactional ids."""
    found = isolation.fenced(inits)
    return [Fence(own.process, own.op, end, fence.op) for own, end, fence in found]


class Open(NamedTuple):
    """Transactions, each named by the event that ended it, and until when they were open."""

    op: I64
    until: I64
    """The latest event at which it was certainly open."""


def overdue(history: History) -> Open:
    """Return the transactions that were certainly open at their end or later."""
    sends, polls, writer = history.sends, history.polls, history.writer
    if not sends.txn.any() and not polls.txn.any():
        return Open(_NONE, _NONE)
    lives = isolation.lives(history)
    inside = np.flatnonzero((writer >= 0) & polls.txn)
    op = np.concatenate((lives.op, polls.op[inside]))
    until = np.concatenate((lives.open, sends.invoked[writer[inside]]))
    late = until >= op
    return latest([Open(op[late], until[late])])


def latest(parts: Iterable[Open]) -> Open:
    """Return the transactions of several partitions, each with its latest event."""
    parts = list(parts)
    op = np.concatenate([_NONE, *(part.op for part in parts)])
    until = np.concatenate([_NONE, *(part.until for part in parts)])
    order = np.lexsort((-until, op))
    first = order[changes(op[order])]
    return Open(op[first], until[first])


def early(history: History) -> I64:
    """Return the transactions of which a record was read, or was below a last stable offset, before
    they ended."""
    sends, polls, writer = history.sends, history.polls, history.writer
    rows = np.flatnonzero(writer >= 0)
    rows = rows[sends.txn[writer[rows]] & (sends.outcome[writer[rows]] != FAIL)]
    rows = rows[polls.op[rows] < sends.op[writer[rows]]]
    below = [distinct(sends.op[mine]) for mine, _ in _below(history, sends.op)]
    return distinct(np.concatenate([sends.op[writer[rows]], *below]))


def _below(history: History, until: I64) -> Iterator[tuple[I64, int]]:
    """Yield the rows of ``sends`` whose records were below a last stable offset that was received
    before the event ``until`` of the row or with it, and the operation that received it."""
    sends, steps = history.sends, history.steps
    stable = np.flatnonzero(steps.kind == STABLE)
    if not len(stable):
        return
    place = isolation.places(history)
    rows = np.flatnonzero(sends.txn & (sends.outcome == OK) & (place != UNKNOWN))
    for probe in stable.tolist():
        mine = rows[history.send_key[rows] == history.step_key[probe]]
        mine = mine[(place[mine] < steps.offset[probe]) & (until[mine] >= steps.op[probe])]
        if len(mine):
            yield mine, int(steps.op[probe])


def zombies(sends: AllSends | Sends, fences: Iterable[Fence]) -> I64:
    """Return the transactions of fenced processes that ended after the takeover."""
    rows = np.flatnonzero(sends.txn & (sends.outcome != FAIL))
    rows = rows[np.argsort(sends.process[rows], kind="stable")]
    process = sends.process[rows]
    found = [np.zeros(0, dtype=np.int64)]
    for fence in fences:
        mine = rows[slice(*np.searchsorted(process, (fence.process, fence.process + 1)))]
        began = sends.invoked[mine]
        is_its = (began > fence.begin) & (began < fence.end)
        found.append(sends.op[mine[is_its & (sends.op[mine] >= fence.taken)]])
    return distinct(np.concatenate(found))


def links(history: History, overdue: I64) -> tuple[I64, I64]:
    """Return pairs of transactions: until when the first one was open may decide until when the
    second one was, which read a record of it.

    That is so if the first one ended after the second one began, or if it was ``overdue``.
    """
    sends, polls, writer = history.sends, history.polls, history.writer
    rows = np.flatnonzero((writer >= 0) & polls.txn)
    rows = rows[sends.txn[writer[rows]]]
    source, target = sends.op[writer[rows]], polls.op[rows]
    operations = polls.operations
    began = operations.event_index[operations.first[polls.operation[rows]]]
    linked = (source != target) & ((source > began) | is_in(source, overdue))
    return source[linked], target[linked]


def _latest_below(history: History, rows: I64) -> I64:
    """Return the latest invocation among the sends of records that were read below each of these
    rows of ``sends``, of those that have an offset and such records."""
    sends, polls, writer = history.sends, history.polls, history.writer
    read = np.flatnonzero((writer >= 0) & (polls.offset != UNKNOWN))
    read = read[np.lexsort((polls.offset[read], history.poll_key[read]))]
    rows = rows[sends.offset[rows] != UNKNOWN]
    found = [_NONE]
    for key in distinct(history.send_key[rows]).tolist():
        of_key = read[history.poll_key[read] == key]
        if len(of_key):
            latest = np.maximum.accumulate(sends.invoked[writer[of_key]])
            mine = sends.offset[rows[history.send_key[rows] == key]]
            below = np.searchsorted(polls.offset[of_key], mine)
            found.append(latest[below[below > 0] - 1])
    return np.concatenate(found)


def neighbours(history: History, suspects: I64, open_at_end: Open) -> I64:
    """Return the operations that show until when these transactions were open, and who saw them.

    They are the readers of their records; the writers of what they read; the latest sends before
    their own records in a log, with their readers; and what received a last stable offset behind
    one of their records while they may have been open, which may be long after their ends
    (``open_at_end``).
    """
    sends, polls, writer = history.sends, history.polls, history.writer
    read = np.flatnonzero(writer >= 0)
    sender, reader = sends.op[writer[read]], polls.op[read]
    mine = np.flatnonzero(is_in(sends.op, suspects))
    behind = np.concatenate((isolation.appended(history)[mine], _latest_below(history, mine)))
    before = distinct(sends.op[is_in(sends.invoked, behind)])
    until = np.where(is_in(sends.op, suspects), sends.op, UNKNOWN)
    late = latest((open_at_end, overdue(history)))
    rows = np.flatnonzero(is_in(sends.op, late.op))
    until[rows] = late.until[np.searchsorted(late.op, sends.op[rows])]
    probes = np.array([op for _, op in _below(history, until)], dtype=np.int64)
    return distinct(
        np.concatenate(
            (
                before,
                probes,
                reader[is_in(sender, np.union1d(before, suspects))],
                sender[is_in(reader, suspects)],
            )
        )
    )
