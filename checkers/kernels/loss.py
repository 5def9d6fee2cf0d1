"""Loss: an acknowledged record that is not in the log.

Two kinds of readers show it: any reader that went past a record which no process has ever read; and
a final reader, which began at the beginning after everything had been acknowledged and healed. What
the final reader did not see is gone, even if others read it before.
"""

from dataclasses import replace

import numpy as np

from checkers.kernels import compacted
from checkers.kernels.arrays import is_in, places
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, Bools, CatchUp, Sends, groups

DELAY_NS = 30_000_000_000
"""A record that is read for the first time later than this after its acknowledgement is late."""


def frontier(log: Log) -> int:
    """Return how far the log was certainly read: the highest first offset of a value that was sent.

    Only the first offset of a duplicated value counts, and only values that were sent: a single
    wrong offset must not make everything before it look lost.
    """
    known = log.known
    if not len(known.offset):
        return UNKNOWN
    value = known.value[known.by_value]
    first = known.by_value[groups(value)[0]]
    counts = known.read[first] & is_in(known.value[first], log.sends.value)
    return int(known.offset[first][counts].max(initial=UNKNOWN))


def lost_writes(log: Log) -> list[Found]:
    """Find records that must be in the log and are not. Jepsen's ``lost-write``.

    Unlike Jepsen, this includes records that were read and vanished. Their variant is ``read``, and
    no acks excuse them, because consumers only receive what all in-sync replicas hold. The variant
    is ``txn`` for a transaction that was acknowledged, and ``proven`` for one in doubt of which
    something was read: it was committed, if readers receive nothing else.

    A record that a client may have deleted is not lost: it is before an offset that was requested,
    and was sent before the answer. From a compacted log, only the last record of a record key can
    be lost. The variant is ``deleted`` for a tombstone, or for what one may have deleted, and
    ``deleted-read`` if it was read; ``also`` is how long ago the tombstone was sent, in
    milliseconds.
    """
    sends = log.sends
    was_read = is_in(sends.value, log.polls.value)
    offset = sends.offset
    if (offset == UNKNOWN).any():
        offset = np.where(offset != UNKNOWN, offset, log.known.offset_of(sends.value))
    if log.caught_up is None:
        gone = ~was_read & (offset != UNKNOWN) & (offset <= frontier(log))
    else:
        # A record is in the log if it was acknowledged or its transaction happened, even if its
        # place is unknown; another proven record may be nowhere.
        gone = ~is_in(sends.value, seen_finally(log, log.caught_up))
        gone &= (offset != UNKNOWN) | (sends.outcome == OK) | sends.txn
    rows = np.flatnonzero(sends.accountable & gone)
    if not len(rows):
        return []
    rows = rows[~_may_be_deleted(log, rows, offset[rows])]
    if log.is_compacted:
        rows = rows[~compacted.excused(log, rows, offset[rows])]
    proofs = _Proofs(log)
    return [
        _deleted(log, row, proofs.found(row, int(offset[row]), was_read=bool(was_read[row])))
        for row in rows.tolist()
    ]


def _may_be_deleted(log: Log, rows: I64, offset: I64) -> Bools:
    """Return which rows a deletion may have removed. A record that is sent after a deletion was
    answered is not before the deleted offset; one without a known place may be anywhere."""
    invoked, deletions = log.sends.invoked[rows], log.deletions
    found = np.zeros(len(rows), dtype=np.bool_)
    if not len(deletions.op):
        return found
    least = np.where(offset == UNKNOWN, _least_offsets(log, invoked), offset)
    for asked, until in zip(deletions.offset.tolist(), deletions.until.tolist(), strict=True):
        found |= (least < asked) & (invoked < until)
    return found


def _least_offsets(log: Log, invoked: I64) -> I64:
    """Return the lowest offset that a record can have whose send began at an event: it is above
    those of all records that were acknowledged or read before."""
    order = log.known.op.argsort()
    reach = np.maximum.accumulate(log.known.offset[order])
    before = log.known.op[order].searchsorted(invoked)
    return np.where(before > 0, reach[np.maximum(before - 1, 0)] + 1, 0) if len(reach) else before


def _deleted(log: Log, row: int, found: Found) -> Found:
    """Return the finding, with another variant if a tombstone may be the cause."""
    age_ms = compacted.deleted_for_ms(log, row) if log.is_compacted else None
    if age_ms is None:
        return found
    variant = "deleted-read" if found.variant == "read" else "deleted"
    return replace(found, variant=variant, also=(age_ms,))


def seen_finally(log: Log, end: CatchUp) -> I64:
    """Return the values that the final reader saw, or any other reader since it began."""
    polls, resets = log.polls, log.resets
    gave_up = resets.op[(resets.process == end.process) & (resets.op < end.op)]
    mine = polls.op[(polls.process == end.process) & (polls.op > gave_up.max(initial=-1))]
    begin = min(mine.min(initial=end.op), end.op)
    seen: I64 = polls.value[polls.op >= begin]
    return seen


class _Proofs:
    """Finds the best evidence against each lost record of a log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._read = np.flatnonzero(log.known.read)
        self._read_offsets = log.known.offset[self._read]
        self._values, self._first = log.first_reads

    def found(self, row: int, offset: int, *, was_read: bool) -> Found:
        sends = self._log.sends
        value, op = int(sends.value[row]), int(sends.op[row])
        place = "" if offset == UNKNOWN else f" at offset {offset}"
        if sends.outcome[row] == OK:
            story = f"value {value} was acknowledged to process {sends.process[row]}{place}"
        else:
            story = (
                f"value {value} of process {sends.process[row]}, in doubt, was proven by a "
                f"reader{place}"
            )
        story += f" at {at(int(sends.end_ns[row]))}"
        ops, variant = [op], ""
        if sends.txn[row]:
            variant = "txn" if sends.outcome[row] == OK else "proven"
        if was_read:
            variant = "read"
            first = self._first[np.searchsorted(self._values, value)]
            polls = self._log.polls.where(first)
            story += f" and read by process {polls.process} at {at(int(polls.end_ns))}"
            ops.append(int(polls.op))
        proof, witness = self._against(value, offset, was_read=was_read)
        return Found(
            anomaly="lost-write",
            key=self._log.key,
            offset=None if offset == UNKNOWN else offset,
            value=value,
            variant=variant,
            ops=tuple(dict.fromkeys([*ops, witness])),
            why=f"{story}; {proof}",
        )

    def _against(self, value: int, offset: int, *, was_read: bool) -> tuple[str, int]:
        """Return the evidence that a record is gone, and its event: another record is in its place,
        a reader went past it, or one read the whole log."""
        known, end = self._log.known, self._log.caught_up
        begin, stop = np.searchsorted(known.offset, (offset, offset + 1))
        for row in range(begin, stop):
            if offset != UNKNOWN and known.value[row] != value and known.read[row]:
                return (
                    f"but offset {offset} holds value {known.value[row]}, read by process"
                    f" {known.process[row]} at {at(int(known.time_ns[row]))}",
                    int(known.op[row]),
                )
        beyond = np.searchsorted(self._read_offsets, offset, side="right")
        if not was_read and offset != UNKNOWN and beyond < len(self._read):
            row = int(self._read[beyond])
            return (
                f"process {known.process[row]} read the later offset {known.offset[row]} at "
                f"{at(int(known.time_ns[row]))}, and no process ever read {value}",
                int(known.op[row]),
            )
        assert end is not None, (
            "the record is below the frontier, so its place or a later one was read"
        )
        return (
            f"process {end.process} read the log from its beginning to its end, position "
            f"{end.position}, until {at(end.time_ns)}, and did not receive it",
            end.op,
        )


def unseen(log: Log) -> list[Found]:
    """Find acknowledged records that were first read late, or not at all.

    ``unseen-delayed`` was first read late. ``unseen-unchecked`` was not read, and no reader went
    past it: there is no evidence either way. There is at most one finding of each: the latest, and
    the first; the others are folded into it.
    """
    acked, (values, first) = log.acked, log.first_reads
    seen = is_in(acked.value, values)
    found: list[Found] = []
    if log.caught_up is None and not seen.all():
        found += _unchecked(log, acked.where(~seen))
    acked = acked.where(seen)
    return found + _delayed(log, acked, first[places(values, acked.value)])


def _delayed(log: Log, acked: Sends, reading_row: I64) -> list[Found]:
    """Find the record that was first read latest after its acknowledgement."""
    delay = log.polls.end_ns[reading_row] - acked.end_ns
    if not (delay > DELAY_NS).any():
        return []
    reading, row = log.polls.where(reading_row), int(delay.argmax())
    return [
        Found(
            anomaly="unseen-delayed",
            key=log.key,
            offset=int(reading.offset[row]),
            value=int(acked.value[row]),
            ops=(int(acked.op[row]), int(reading.op[row])),
            why=f"value {acked.value[row]} was acknowledged at {at(int(acked.end_ns[row]))}"
            f" and first read at {at(int(reading.end_ns[row]))}, by process"
            f" {reading.process[row]} at offset {reading.offset[row]}",
            folded=int((delay > DELAY_NS).sum()) - 1,
        )
    ]


def _unchecked(log: Log, unread: Sends) -> list[Found]:
    """Find the first of the acknowledged records that no process has read, or read past."""
    reach = frontier(log)
    unchecked = unread.where((unread.offset == UNKNOWN) | (unread.offset > reach))
    if not len(unchecked.op):
        return []
    value, offset = int(unchecked.value[0]), int(unchecked.offset[0])
    return [
        Found(
            anomaly="unseen-unchecked",
            key=log.key,
            offset=None if offset == UNKNOWN else offset,
            value=value,
            ops=(int(unchecked.op[0]),),
            why=f"value {value} was acknowledged"
            + (f" at offset {offset}" if offset != UNKNOWN else "")
            + f" at {at(int(unchecked.end_ns[0]))}; no process read"
            + (f" beyond offset {reach}" if reach != UNKNOWN else " the log"),
            folded=len(unchecked.op) - 1,
        )
    ]


def kernel(log: Log) -> list[Found]:
    """Find losses and unseen records; a deleted topic has none."""
    if log.is_deleted:
        return []
    return lost_writes(log) + unseen(log)
