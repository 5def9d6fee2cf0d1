"""The figures of a partition of which not all records are judged by one task.

Outages, recoveries and consumption follow from a few columns of each record that is left out, and
from the records that are judged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.counts import Counts
from checkers.distributed import packing
from checkers.distributed.blocks import PLACES, RangeRows
from checkers.distributed.kept import Kept
from checkers.kernels import availability, consumption
from checkers.kernels.arrays import first_rows
from checkers.kernels.consumption import Consumption, Lag
from checkers.kernels.key import Report
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I8, I64, OK, Bools, Polls, Sends


class Delivery(NamedTuple):
    """A record that was delivered some time after it was known to be in the log."""

    ns: int
    known_ns: int
    place: int
    process: int
    value: int
    after: int
    """The offset of the record before it that is judged; -1 without one."""


class Earlier(NamedTuple):
    """Records that were known before one process read the first record of a range."""

    process: int
    latest: Delivery
    """The one that was delivered latest."""
    known_ns: int
    """When the last of them was known."""


class Left(NamedTuple):
    """What is known of the records of a range that are left out."""

    times: bytes
    """When each acknowledged record was sent, acknowledged and first read, and when each record
    that failed was sent and rejected."""
    read: int
    """Deliveries of records."""
    read_in_transactions: int
    latest: Delivery | None
    """The latest delivery of a record that appeared after its reader began."""
    earlier: tuple[Earlier, ...]


def left(rows: RangeRows, kept: Kept, began_ns: Mapping[int, int] | None) -> Left:
    """Return what is known of the records of a range that are not kept; each was read by processes
    that read all of them.

    ``began_ns`` is when the first record of the partition was delivered to each process; without
    it, processes began with this range.
    """
    out = rows.where(
        np.flatnonzero(~kept.has(rows.sends.offset)), np.flatnonzero(~kept.has(rows.polls.offset))
    )
    sends, polls = out.sends, out.polls
    acked, failed = sends.where(sends.outcome == OK), sends.where(sends.outcome == FAIL)
    values, first = first_rows(polls.value)
    order = acked.value.argsort()
    read = np.empty_like(first)
    read[order] = first
    read_ns = polls.end_ns[read]
    row = order[np.searchsorted(values, polls.value)]
    known_ns = np.minimum(read_ns, acked.end_ns)[row]
    late = _Late(polls, out.polled, known_ns, kept)
    began = _began(polls, began_ns)
    is_new = known_ns > began
    return Left(
        packing.dumped(
            (_packed(acked.start_ns, acked.end_ns, read_ns), (failed.start_ns, failed.end_ns))
        ),
        len(polls.op),
        int(polls.txn.sum()),
        late.latest(is_new),
        () if began_ns is not None else tuple(late.earlier(~is_new)),
    )


def _began(polls: Polls, began_ns: Mapping[int, int] | None) -> I64:
    process, first = first_rows(polls.process)
    since = polls.end_ns[first]
    if began_ns is not None:
        since = np.array([began_ns[each] for each in process.tolist()], dtype=np.int64)
    return since[np.searchsorted(process, polls.process)]


class _Late:
    """Deliveries of records that were known before."""

    def __init__(self, polls: Polls, place: I64, known_ns: I64, kept: Kept) -> None:
        self._polls, self._place, self._known_ns, self._kept = polls, place, known_ns, kept
        self._delay = polls.end_ns - known_ns

    def latest(self, mask: Bools) -> Delivery | None:
        """Return the latest one among some, if one is late."""
        rows = np.flatnonzero(mask & (self._delay > 0))
        if not len(rows):
            return None
        delay = self._delay[rows]
        latest = rows[delay == delay.max()]
        row = int(latest[self._place[latest].argmin()])
        return Delivery(
            int(self._delay[row]),
            int(self._known_ns[row]),
            int(self._place[row]),
            int(self._polls.process[row]),
            int(self._polls.value[row]),
            self._kept.before(int(self._polls.offset[row])),
        )

    def earlier(self, mask: Bools) -> Any:
        """Yield those of each process."""
        for process in np.unique(self._polls.process[mask]).tolist():
            mine = mask & (self._polls.process == process)
            latest = self.latest(mine)
            if latest is not None:
                known_ns = int(self._known_ns[mine & (self._delay > 0)].max())
                yield Earlier(process, latest, known_ns)


def latest(parts: Sequence[Left], began_ns: Mapping[int, int]) -> tuple[Delivery | None, bool]:
    """Return the latest delivery of a record that appeared after its reader began, and whether it
    is certain."""
    found, certain = [part.latest for part in parts if part.latest is not None], True
    for earlier in (each for part in parts for each in part.earlier):
        began = began_ns[earlier.process]
        if earlier.latest.known_ns > began:
            found.append(earlier.latest)
        elif earlier.known_ns > began:
            certain = False
    return min(found, key=lambda each: (-each.ns, each.place), default=None), certain


class Partition(NamedTuple):
    """What is known of the records of a partition that are left out."""

    acked: int
    sent: Sends
    """Their sends, of which only times and outcomes are known."""
    seen_ns: I64
    """When each acknowledged one was acknowledged and read."""
    read: int
    read_in_transactions: int
    latest: Delivery | None

    def counts(self, healed_ns: int | None) -> Counts:
        """Return what counts of these records."""
        started_ns = self.sent.start_ns
        return Counts(
            accountable=self.acked,
            placed=self.acked,
            read=self.read,
            read_in_transactions=self.read_in_transactions,
            sent_after_healing=int((started_ns >= healed_ns).sum()) if healed_ns else 0,
        )


def joined(parts: Sequence[Left], worst: Delivery | None) -> Partition:
    """Return what is known of all ranges."""
    acked, failed = [], []
    for part in parts:
        of_acked, of_failed = packing.loaded(part.times)
        acked.append(_times(of_acked))
        failed.append(of_failed)
    start, end, read = (np.concatenate([_NONE, *column]) for column in _columns(acked, 3))
    failed_start, failed_end = (np.concatenate([_NONE, *column]) for column in _columns(failed, 2))
    seen = np.maximum(read, end)
    outcome = np.zeros(len(end) + len(failed_end), dtype=np.int8)
    outcome[len(end) :] = FAIL
    start, end = np.concatenate((start, failed_start)), np.concatenate((end, failed_end))
    return Partition(
        acked=len(seen),
        sent=_timed(start, end, outcome),
        seen_ns=seen,
        read=sum(part.read for part in parts),
        read_in_transactions=sum(part.read_in_transactions for part in parts),
        latest=worst,
    )


_NONE = np.zeros(0, dtype=np.int64)


def _timed(start_ns: I64, end_ns: I64, outcome: I8) -> Sends:
    """Return sends of which only times and outcomes are known."""
    zero = np.broadcast_to(np.int64(0), len(outcome))
    no = np.broadcast_to(np.False_, len(outcome))
    return Sends(zero, zero, zero, zero, zero, outcome, no, no, start_ns, end_ns)


def _columns(rows: Sequence[Sequence[I64]], count: int) -> Sequence[Sequence[I64]]:
    return list(zip(*rows, strict=True)) or count * [()]


def report(judged: Report, log: Log, left_out: Partition) -> Report:
    """Return the report of a partition, given that of the records that are judged, and their
    log."""
    sends, sent = log.sends, left_out.sent
    every = _timed(
        np.concatenate((sends.start_ns, sent.start_ns)),
        np.concatenate((sends.end_ns, sent.end_ns)),
        np.concatenate((sends.outcome, sent.outcome)),
    )
    whole = Log(log.key, every, log.polls, log.resets, faults=log.faults)
    outage, recoveries = availability.measured(whole)
    return judged._replace(
        acked=judged.acked + left_out.acked,
        read=judged.read + left_out.acked,
        outage=outage,
        recoveries=recoveries,
        consumption=_consumption(log, left_out),
    )


def _consumption(log: Log, left_out: Partition) -> Consumption:
    own = consumption.consumption(log)
    acked_ns, seen_ns = consumption.seen(log)
    sent = left_out.sent
    return consumption.of_times(
        log.key,
        np.concatenate((acked_ns, sent.end_ns[sent.outcome == OK])),
        np.concatenate((seen_ns, left_out.seen_ns)),
        _lag(log, own.lag, left_out.latest),
        consumption.summed((own.counts, {1: left_out.read} if left_out.read else {})),
    )


def _lag(log: Log, own: Lag | None, other: Delivery | None) -> Lag | None:
    """Return the longest lag; the first one delivered, if several are as long."""
    if other is None:
        return own
    lag = Lag(log.key, other.process, other.value, other.place // PLACES, other.ns)
    if own is None or own.ns != lag.ns:
        return lag if own is None or own.ns < lag.ns else own
    if own.op != lag.op:
        return min(own, lag, key=lambda each: each.op)
    polls = log.polls
    mine = (polls.op <= own.op) & (polls.process == lag.process)
    before = np.flatnonzero(mine & (polls.offset == other.after))
    row = np.flatnonzero(mine & (polls.op == own.op) & (polls.value == own.value))
    return own if row[0] <= before.max(initial=-1) else lag


def _packed(start_ns: I64, end_ns: I64, read_ns: I64) -> Any:
    """Pack columns of times as differences, which are small."""
    columns = (np.diff(end_ns, prepend=0), end_ns - start_ns, read_ns - end_ns)
    return [_small(column) for column in columns]


def _small(column: I64) -> Any:
    is_small = np.abs(column[1:]).max(initial=0) < 1 << 31
    return column[:1], column[1:].astype(np.int32) if is_small else column[1:]


def _times(packed: Any) -> tuple[I64, I64, I64]:
    since, took, later = (np.concatenate(pair).astype(np.int64) for pair in packed)
    end_ns = np.cumsum(since)
    return end_ns - took, end_ns, later + end_ns
