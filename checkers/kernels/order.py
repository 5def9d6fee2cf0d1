"""Order of writes: the log must agree with each process's own order, and with real time.

The variant of a finding is ``ack`` when the place of one of the two records is known only from its
acknowledgement: where acknowledged records may be lost, that record may not be in the log at all.
"""

import numpy as np

from checkers.kernels.arrays import is_in, places, stable_order
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, Bools, Sends
from checkers.kernels.steps import FOREVER


def nonmonotonic_sends(log: Log) -> list[Found]:
    """Find records of a process at or before its earlier ones. Jepsen's ``nonmonotonic-send``, and
    ``int-nonmonotonic-send`` where one operation wrote both. ``also`` are the two values."""
    sends = log.placed_sends
    if len(sends.op) < 2:
        return []
    sends = sends.where(stable_order(sends.process))
    same = sends.process[1:] == sends.process[:-1]
    rows = np.flatnonzero(same & (sends.offset[1:] <= sends.offset[:-1])) + 1
    if not len(rows):
        return []
    claimed = ~is_in(sends.value, log.polls.value)
    found = []
    for row in rows.tolist():
        before = row - 1
        inside = sends.op[row] == sends.op[before]
        found.append(
            Found(
                anomaly="int-nonmonotonic-send" if inside else "nonmonotonic-send",
                key=log.key,
                offset=int(sends.offset[row]),
                value=int(sends.value[row]),
                variant="ack" if claimed[row] or claimed[before] else "",
                ops=tuple(dict.fromkeys((int(sends.op[before]), int(sends.op[row])))),
                also=(int(sends.value[before]), int(sends.value[row])),
                why=f"process {sends.process[row]} sent value {sends.value[before]} and then"
                f" {sends.value[row]}{' in one operation' if inside else ''}, but the log has"
                f" {sends.value[before]} at offset {sends.offset[before]} and {sends.value[row]}"
                f" at {sends.offset[row]}",
            )
        )
    return found


def send_skips(log: Log) -> list[Found]:
    """Find records of other operations between two that one operation wrote in sequence.

    This is Jepsen's ``int-send-skip``. There is at most one finding, and the others are folded into
    it, because Kafka never isolates writes. ``also`` are the two values.
    """
    sends = log.placed_sends
    if len(sends.op) < 2:
        return []
    rank = log.known.rank(sends.offset)
    rows = np.flatnonzero((sends.op[1:] == sends.op[:-1]) & (rank[1:] - rank[:-1] > 1)) + 1
    if not len(rows):
        return []
    return [_send_skip(log, int(rows[0]), folded=len(rows) - 1)]


def _send_skip(log: Log, row: int, *, folded: int) -> Found:
    """Return the finding about a row of sends and the row before it."""
    sends, before = log.placed_sends, row - 1
    return Found(
        anomaly="int-send-skip",
        key=log.key,
        offset=int(sends.offset[row]),
        value=int(sends.value[row]),
        ops=(int(sends.op[row]),),
        also=(int(sends.value[before]), int(sends.value[row])),
        why=f"process {sends.process[row]} sent value {sends.value[before]} and then"
        f" {sends.value[row]} in one operation; they are at the offsets {sends.offset[before]}"
        f" and {sends.offset[row]}, with other records between them",
        folded=folded,
    )


def _shown(log: Log, sends: Sends) -> Sends:
    """Return the records that were certainly in the log by some event, in the order of events.

    A record is certainly there once it was acknowledged or read. ``op`` is that event, and
    ``end_ns`` its time. Records that were read before they were sent are left out.
    """
    values, first = log.first_reads
    place = np.minimum(places(values, sends.value), max(len(values) - 1, 0))
    read = np.full(len(sends.op), FOREVER)
    read_ns = sends.end_ns
    if len(values):
        is_read = values[place] == sends.value
        read = np.where(is_read, log.polls.op[first[place]], FOREVER)
        read_ns = np.where(is_read, log.polls.end_ns[first[place]], read_ns)
    acked = np.where(sends.outcome == OK, sends.op, FOREVER)
    by = np.minimum(read, acked)
    shown = sends._replace(op=by, end_ns=np.where(read < acked, read_ns, sends.end_ns))
    shown = shown.where((by != FOREVER) & (by > sends.invoked))
    return shown.where(np.argsort(shown.op, kind="stable"))


def realtime_order(log: Log) -> list[Found]:
    """Find records below one that was acknowledged, or read, before their write began.

    One misplaced record contradicts many others, so the smaller side is reported: the early records
    that are too high, or the late ones that are too low. ``also`` are the two values. Records that
    were read are also compared on their own: what contradicts one of these is not ``ack``, although
    it contradicts a higher one as well that was never read.
    """
    sends = log.placed_sends
    found = _contradictions(log, sends)
    if not any(f.variant for f in found):
        return found
    sure = _contradictions(log, sends.where(is_in(sends.value, log.polls.value)))
    misplaced = {f.value for f in sure}
    return sure + [f for f in found if f.variant and f.value not in misplaced]


def _contradictions(log: Log, late: Sends) -> list[Found]:
    """Return the misplaced ones among these records."""
    if len(late.op) < 2:
        return []
    early = _shown(log, late)
    late = late.where(np.argsort(late.invoked, kind="stable"))
    if not len(early.op):
        return []
    # for each late record: how many were in the log before it, and which of them is highest
    before = np.searchsorted(early.op, late.invoked)
    highest = _running_max(early.offset)[np.maximum(before - 1, 0)]
    too_low = (before > 0) & (early.offset[highest] > late.offset)
    # for each early record: from which on the late ones were invoked after it, and which is lowest
    after = np.searchsorted(late.invoked, early.op, side="right")
    lowest = len(late.op) - 1 - _running_max(-late.offset[::-1])[::-1]
    lowest = lowest[np.minimum(after, len(late.op) - 1)]
    too_high = (after < len(late.op)) & (late.offset[lowest] < early.offset)
    if too_low.sum() <= too_high.sum():
        return _pairs(
            log, early.where(highest[too_low]), late.where(too_low), is_early_misplaced=False
        )
    return _pairs(log, early.where(too_high), late.where(lowest[too_high]), is_early_misplaced=True)


def _running_max(column: I64) -> I64:
    """Return for each row the row that holds the maximum up to it."""
    peaks: Bools = column >= np.maximum.accumulate(column)
    rows: I64 = np.maximum.accumulate(np.where(peaks, np.arange(len(column)), 0))
    return rows


def _pairs(log: Log, early: Sends, late: Sends, *, is_early_misplaced: bool) -> list[Found]:
    misplaced = early if is_early_misplaced else late
    if not len(early.op):
        return []
    read = is_in(early.value, log.polls.value) & is_in(late.value, log.polls.value)
    return [
        Found(
            anomaly="realtime-order",
            key=log.key,
            offset=offset,
            value=value,
            variant="" if read[row] else "ack",
            ops=(int(early.op[row]), int(late.op[row])),
            also=(int(early.value[row]), int(late.value[row])),
            why=f"value {early.value[row]} of process {early.process[row]} was in the log by "
            f"{at(int(early.end_ns[row]))}, before process {late.process[row]} began to send "
            f"{late.value[row]} at {at(int(late.start_ns[row]))}, but its place in the log is "
            f"later: offset {early.offset[row]}, not below {late.offset[row]}",
        )
        for row, (offset, value) in enumerate(
            zip(misplaced.offset.tolist(), misplaced.value.tolist(), strict=True)
        )
    ]


def kernel(log: Log) -> list[Found]:
    """Check the order of processes and of real time.

    A record that contradicts the order of its own process is reported only once, unless a contract
    may permit that order and not the one of real time: that of one operation, or one of which a
    record may be lost.
    """
    program = nonmonotonic_sends(log)
    convicted: dict[str, set[int]] = {"": set(), "ack": set()}
    for found in program:
        if found.anomaly == "nonmonotonic-send":
            convicted["ack"].update(found.also)
            if not found.variant:
                convicted[""].update(found.also)
    return program + [f for f in realtime_order(log) if convicted[f.variant].isdisjoint(f.also)]
