"""Isolation and fencing: effects of a transaction before its commit, or after it was fenced.

A history contains when a transaction was invoked and completed, but not when it was committed. The
steps of the transaction give a lower bound for the time at which it was still open:

- It was still open when the sends of all records that it polled had been invoked.
- It was still open when the sends of all records that precede its own records in their logs had
  been invoked.
- It was still open when its delays had elapsed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from checkers.kernels import arrays
from checkers.kernels.arrays import changes, order_within
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found, at
from checkers.kernels.history import History, Init
from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Rows, groups
from checkers.kernels.steps import STABLE

_NEVER = 1 << 62
"""An event index after all events."""
ROUNDS_MAX = 10_000
"""The limit for the length of a chain of transactions that read from each other."""


class _Columns(NamedTuple):
    op: I64
    row: I64
    """The row of its first record."""
    appended: I64
    """The latest event after which one of its records was certainly appended."""
    polled: I64
    """The latest event after which one of its polls certainly took place."""
    waited: I64
    """The latest event at which one of its delays had certainly not elapsed."""


class Lives(Rows, _Columns):
    """One row per transaction that sent records, in the order of ``op``."""

    __slots__ = ()

    @property
    def open(self) -> I64:
        """The latest event at which each transaction was certainly not committed yet."""
        return np.maximum(np.maximum(self.appended, self.polled), self.waited)


def kernel(history: History) -> list[Found]:
    """Find three anomalies of transactions.

    ``dirty-read`` is a poll that delivered a record of an open transaction, ``lso-ahead`` a last
    stable offset after such a record, and ``zombie-write`` an effect of a fenced transaction.
    """
    if not history.sends.txn.any():
        return []
    found = lives(history)
    _wait_for_each_other(found, *_others_read(history, found))
    return [
        *_dirty_reads(history, found),
        *_stable_ahead(history, found),
        *_zombie_writes(history, found),
    ]


def lives(history: History) -> Lives:
    """Return until when each transaction was certainly open, by its own records and by those that
    it read, but not by the transactions that it read from."""
    sends, polls, writer = history.sends, history.polls, history.writer
    rows = np.flatnonzero(sends.txn)
    begins = changes(sends.op[rows])
    first = np.flatnonzero(begins)
    op, number = sends.op[rows[first]], np.cumsum(begins) - 1
    behind = sends.invoked[rows[first]]
    np.maximum.at(behind, number, appended(history)[rows])
    polled = sends.invoked[rows[first]]
    inside = np.flatnonzero((writer >= 0) & polls.txn)
    inside = inside[np.isin(polls.op[inside], op)]
    np.maximum.at(polled, arrays.places(op, polls.op[inside]), sends.invoked[writer[inside]])
    waited = history.send_until[rows[first]]
    return Lives(op=op, row=rows[first], appended=behind, polled=polled, waited=waited)


def _others_read(history: History, lives: Lives) -> tuple[I64, I64]:
    """Return the rows of transactions whose records another one read, and the rows of those."""
    sends, polls, writer = history.sends, history.polls, history.writer
    inside = np.flatnonzero((writer >= 0) & polls.txn)
    inside = inside[np.isin(polls.op[inside], lives.op)]
    inside = inside[sends.txn[writer[inside]] & (sends.op[writer[inside]] != polls.op[inside])]
    source, target = sends.op[writer[inside]], polls.op[inside]
    return arrays.places(lives.op, source), arrays.places(lives.op, target)


def _wait_for_each_other(lives: Lives, source: I64, target: I64) -> None:
    """Update ``polled`` of transactions that read records of other transactions.

    If a transaction reads a record of another one, its poll took place after the commit of the
    other, and therefore after every event at which the other was still open. If such an event is
    after the end of the reading transaction, the read is dirty, and ``polled`` is not changed.

    Raises :class:`GaveUp` for a chain of more than ``ROUNDS_MAX`` transactions.
    """
    for _ in range(ROUNDS_MAX):
        until = lives.open[source]
        later = (until > lives.polled[target]) & (until < lives.op[target])
        if not later.any():
            return
        np.maximum.at(lives.polled, target[later], until[later])
    raise GaveUp(f"transactions that read from each other form a chain of more than {ROUNDS_MAX:,}")


def appended(history: History) -> I64:
    """Return for each row of ``sends`` an event after which its record was appended, if it was
    appended. For a record that was not read, the event is derived from the broker's response."""
    sends, polls, writer = history.sends, history.polls, history.writer
    read = np.flatnonzero((writer >= 0) & (polls.offset != UNKNOWN))
    read = read[order_within(history.poll_key[read], polls.offset[read])]
    wrote = writer.take(read)
    floor = history.poll_key.take(read) * (sends.invoked.max(initial=0) + 1)
    latest = floor + sends.invoked.take(wrote)
    np.maximum.accumulate(latest, out=latest)
    latest -= floor
    found = np.where(sends.offset == UNKNOWN, sends.invoked, history.send_after)
    found[wrote[::-1]] = latest[::-1]  # the first of a record's places comes last
    found[wrote] = np.maximum(found.take(wrote), history.send_after.take(wrote))
    return found


def _dirty_reads(history: History, lives: Lives) -> Iterator[Found]:
    """Find polls that delivered a record of a transaction that was certainly still open afterwards.

    There is one finding for each such transaction, with the values of its records in ``also``.
    Reading a record of an aborted transaction is ``G1a`` instead.
    """
    sends, polls, writer = history.sends, history.polls, history.writer
    rows = np.flatnonzero(writer >= 0)
    rows = rows[sends.txn[writer[rows]] & (sends.outcome[writer[rows]] != FAIL)]
    rows = rows[polls.op[rows] != sends.op[writer[rows]]]
    life = arrays.places(lives.op, sends.op[writer[rows]])
    until = lives.open
    early = polls.op[rows] <= until[life]
    rows, life = rows[early], life[early]
    order = np.argsort(life, kind="stable")
    rows, life = rows[order], life[order]
    later = np.flatnonzero(np.isin(sends.invoked, until[life]))[::-1]
    senders = dict(zip(sends.invoked[later].tolist(), later.tolist(), strict=True))
    for begin, end in zip(*groups(life), strict=True):
        row, mine = rows[begin], life[begin]
        sent = writer[row]
        ops = [int(sends.op[sent]), int(polls.op[row])]
        how = "its client waited for longer"
        if until[mine] != lives.waited[mine] and int(until[mine]) not in senders:
            how = "it had read a record of another transaction that was open until later"
        elif until[mine] != lives.waited[mine]:
            other = senders[int(until[mine])]
            ops.append(int(sends.op[other]))
            behind = until[mine] == lives.appended[mine]
            what = "has a record after it" if behind else "had read"
            how = (
                f"process {sends.process[other]} began only at {at(int(sends.start_ns[other]))} to"
                f" send a value that the transaction {what}"
            )
        yield Found(
            anomaly="dirty-read",
            key=history.keys[history.poll_key[row]],
            offset=int(polls.offset[row]),
            value=int(polls.value[row]),
            ops=tuple(ops),
            also=tuple(np.unique(polls.value[rows[begin:end]]).tolist()),
            why=f"process {polls.process[row]} read value {polls.value[row]} at "
            f"{at(int(polls.end_ns[row]))}, while the transaction of process "
            f"{sends.process[sent]} that had sent it was still open: {how}",
            folded=int(end - begin) - 1,
        )


def _stable_ahead(history: History, lives: Lives) -> Iterator[Found]:
    """Find reported last stable offsets above a record of a transaction that was still open then
    and was committed later. There is one finding for each such transaction."""
    sends, steps = history.sends, history.steps
    stable = steps.where(steps.kind == STABLE)
    if not len(stable.op):
        return
    stable_key = history.step_key[steps.kind == STABLE]
    place = places(history)
    rows = np.flatnonzero(sends.txn & (sends.outcome == OK) & (place != UNKNOWN))
    life = arrays.places(lives.op, sends.op[rows])
    until = lives.open[life]
    found: dict[int, tuple[int, int]] = {}
    count: Counter[int] = Counter()
    for probe, (op, offset, key) in enumerate(
        zip(stable.op, stable.offset, stable_key, strict=True)
    ):
        below = (until >= op) & (place[rows] < offset) & (history.send_key[rows] == key)
        for row in rows[below].tolist():
            found.setdefault(int(sends.op[row]), (row, probe))
            count[int(sends.op[row])] += 1
    for op, (row, probe) in found.items():
        yield Found(
            anomaly="lso-ahead",
            key=history.keys[history.send_key[row]],
            offset=int(place[row]),
            value=int(sends.value[row]),
            ops=(int(stable.op[probe]), op),
            why=f"process {stable.process[probe]} received {stable.offset[probe]} as the last "
            f"stable offset by {at(int(stable.end_ns[probe]))}, while a transaction of process "
            f"{sends.process[row]} with value {sends.value[row]} at offset {place[row]} was "
            f"still open: it was committed by {at(int(sends.end_ns[row]))}",
            folded=count[op] - 1,
        )


def places(history: History) -> I64:
    """Return the offset of each row of ``sends``: the acknowledged one, or else the one at which
    its record was read."""
    place = history.sends.offset.copy()
    read = np.flatnonzero((history.writer >= 0) & (history.polls.offset != UNKNOWN))
    read = read[place[history.writer[read]] == UNKNOWN]
    place[history.writer[read]] = history.polls.offset[read]
    return place


def _zombie_writes(history: History, lives: Lives) -> Iterator[Found]:
    """Find transactions that happened although their process was fenced.

    A transaction is found if it was still open after another process had taken over the
    transactional id. If its outcome is unknown, it is found if one of its records was read, and was
    appended after the takeover.
    """
    sends, fences = history.sends, list(fenced(history.inits))
    if not fences:
        return
    lives = lives.where(np.argsort(sends.process[lives.row], kind="stable"))
    process, begun = sends.process[lives.row], sends.invoked[lives.row]
    acked = sends.outcome[lives.row] == OK
    proven = np.isin(lives.op, sends.op[sends.proven])
    alive = np.where(acked, lives.open, np.where(proven, lives.appended, UNKNOWN))
    for own, until, fence in fences:
        mine = slice(*np.searchsorted(process, (own.process, own.process + 1)))
        is_its = (begun[mine] > own.op) & (begun[mine] < until)
        for at_ in (mine.start + np.flatnonzero(is_its & (alive[mine] >= fence.op))).tolist():
            happened = "acknowledged" if acked[at_] else "read"
            state = "began" if begun[at_] > fence.op else "was open"
            yield _zombie_write(history, int(lives.row[at_]), (own, fence), (happened, state))


def _zombie_write(
    history: History, row: int, inits: tuple[Init, Init], story: tuple[str, str]
) -> Found:
    """Return the finding about a row of sends: how it is known, and what it did after the fence."""
    sends, (own, fence), (happened, state) = history.sends, inits, story
    return Found(
        anomaly="zombie-write",
        key=history.keys[history.send_key[row]],
        offset=None if sends.offset[row] == UNKNOWN else int(sends.offset[row]),
        value=int(sends.value[row]),
        ops=(fence.op, int(sends.op[row])),
        why=f"process {fence.process} had taken over the transactional id"
        f" {fence.transactional_id} from process {own.process} at {at(fence.end_ns)}, yet"
        f" value {sends.value[row]} of process {own.process} was {happened}, in a transaction that"
        f" {state} after that",
    )


def fenced(inits: tuple[Init, ...]) -> Iterator[tuple[Init, int, Init]]:
    """Yield each acknowledged ``init`` after which another process took over its transactional id.

    The other two items are the invocation at which the first process takes the id again, until
    which it is fenced, and the first takeover.
    """
    by_id: defaultdict[str, list[Init]] = defaultdict(list)
    for init in inits:
        by_id[init.transactional_id].append(init)
    for same in by_id.values():
        for place, own in enumerate(same):
            later = same[place + 1 :]
            fence = next(
                (i for i in later if i.process != own.process and i.invoked > own.op), None
            )
            if fence is not None:
                again = (i.invoked for i in later if i.process == own.process)
                yield own, next(again, _NEVER), fence
