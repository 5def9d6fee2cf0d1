"""Phantoms: records that were read although no client wrote them, or the write certainly failed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from checkers.kernels.arrays import changes, is_in
from checkers.kernels.found import Found, at
from checkers.kernels.history import History
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, UNKNOWN, Polls, Sends


def phantoms(log: Log) -> list[Found]:
    """Find values that no client tried to write to this partition; ``also`` are their offsets. A
    value that was read without an offset counts as well."""
    polls = log.polls.where(~is_in(log.polls.value, log.sends.value))
    if not len(polls.op):
        return []
    order = np.lexsort((polls.offset, polls.value))  # stable: the first delivery comes first
    value, offset = polls.value[order], polls.offset[order]
    places: dict[int, list[int]] = {}
    for row in order[changes(value) | changes(offset)].tolist():
        places.setdefault(int(polls.value[row]), []).append(row)
    return [_phantom(log, value, polls.where(np.array(rows))) for value, rows in places.items()]


def _phantom(log: Log, value: int, polls: Polls) -> Found:
    """Return the finding; ``polls`` are the first deliveries at each offset."""
    offsets = [offset for offset in polls.offset.tolist() if offset != UNKNOWN]
    place = f" at offset {offsets[0]}" if offsets else " without an offset"
    row = int((polls.offset != UNKNOWN).argmax())
    return Found(
        anomaly="phantom",
        key=log.key,
        offset=offsets[0] if offsets else None,
        value=value,
        ops=tuple(polls.op.tolist()),
        also=tuple(offsets),
        why=f"process {polls.process[row]} read value {value}{place} at "
        f"{at(int(polls.end_ns[row]))}; no process tried to write {value} to this partition",
    )


def misrouted(history: History, found: Sequence[Found]) -> list[Found]:
    """Rename phantoms that were sent to exactly one other partition to ``misrouted``: the record is
    real, but in the wrong log."""
    strays = np.array([f.value for f in found if f.anomaly == "phantom"], dtype=np.int64)
    if not len(strays):
        return list(found)
    senders = _senders(history, strays)

    def routed(phantom: Found) -> Found:
        homes = senders.get(phantom.value, {}) if phantom.value is not None else {}
        if phantom.anomaly != "phantom" or len(homes) != 1:
            return phantom
        ((home, sent),) = homes.items()
        return replace(
            phantom,
            anomaly="misrouted",
            ops=(sent, *phantom.ops),
            why=phantom.why + f", but event {sent} sent it to {history.keys[home]}",
        )

    return [routed(f) for f in found]


def _senders(history: History, values: I64) -> dict[int, dict[int, int]]:
    """Return for each value the partitions that it was sent to, each with the operation."""
    sends, senders = history.sends, dict[int, dict[int, int]]()
    for row in np.flatnonzero(np.isin(sends.value, values)).tolist():
        homes = senders.setdefault(int(sends.value[row]), {})
        homes.setdefault(int(history.send_key[row]), int(sends.op[row]))
    return senders


def aborted_reads(log: Log) -> list[Found]:
    """Find values whose write certainly failed and that a poll of any outcome delivered: ``G1a``.

    A transaction that reads its own record is a ``precommitted-read``, whatever its outcome. The
    variant is ``txn`` when the write that failed was a transaction: a reader of uncommitted records
    has asked for those.
    """
    polls, sends = log.polls, log.sends
    if not (sends.outcome == FAIL).any():
        return []
    possible = sends.value[sends.outcome != FAIL]
    failed = sends.where(sends.outcome == FAIL)
    failed = failed.where(~is_in(failed.value, possible))
    failed = failed.where(np.argsort(failed.value, kind="stable"))
    near = polls.where(is_in(polls.value, failed.value))
    writer = np.searchsorted(failed.value, near.value)
    others = np.flatnonzero(~failed.txn[writer] | (failed.op[writer] != near.op))
    writers, first = np.unique(writer[others], return_index=True)
    readings = near.where(others[first])
    return [
        _aborted_read(log, (failed, write), (readings, row))
        for row, write in enumerate(writers.tolist())
    ]


def _aborted_read(log: Log, sent: tuple[Sends, int], read: tuple[Polls, int]) -> Found:
    """Return the finding about a row of failed sends and the row of polls that delivered it."""
    (failed, write), (readings, row) = sent, read
    return Found(
        anomaly="G1a",
        key=log.key,
        offset=None if readings.offset[row] == UNKNOWN else int(readings.offset[row]),
        value=int(failed.value[write]),
        variant="txn" if failed.txn[write] else "send",
        ops=(int(failed.op[write]), int(readings.op[row])),
        why=f"the write of value {failed.value[write]} by process"
        f" {failed.process[write]} certainly failed at {at(int(failed.end_ns[write]))}, yet"
        f" process {readings.process[row]} read it"
        + (f" at offset {readings.offset[row]}" if readings.offset[row] != UNKNOWN else "")
        + f" at {at(int(readings.end_ns[row]))}",
    )


def kernel(log: Log) -> Iterable[Found]:
    """Find phantoms and aborted reads."""
    return chain(phantoms(log), aborted_reads(log))
