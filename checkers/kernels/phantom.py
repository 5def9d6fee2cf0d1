"""Phantoms: records that were read although nobody wrote them, or the write certainly failed."""

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np

from checkers.kernels.rows import FAIL, Found, History, Log, at


def phantoms(log: Log) -> list[Found]:
    """Values that nobody tried to write to this key, whatever came of it; ``also`` are offsets."""
    known = log.known
    rows = np.flatnonzero(known.read & ~np.isin(known.value, log.sends.value))
    places: dict[int, list[int]] = {}
    for row in rows.tolist():
        places.setdefault(int(known.value[row]), []).append(row)
    return [
        Found(
            anomaly="phantom",
            key=log.key,
            offset=int(known.offset[found[0]]),
            value=value,
            ops=tuple(known.op[found].tolist()),
            also=tuple(known.offset[found].tolist()),
            why=f"process {known.process[found[0]]} read value {value} at offset"
            f" {known.offset[found[0]]} at {at(known.time_ns[found[0]])};"
            f" nobody tried to write {value} to this key",
        )
        for value, found in places.items()
    ]


def misrouted(history: History, found: Sequence[Found]) -> list[Found]:
    """Phantoms that were sent to exactly one other key are ``misrouted``: the record is real and
    lies in the wrong log."""
    strays = np.array([f.value for f in found if f.anomaly == "phantom"], dtype=np.int64)
    if not len(strays):
        return list(found)
    sends, senders = history.sends, dict[int, dict[int, int]]()
    for row in np.flatnonzero(np.isin(sends.value, strays)).tolist():
        homes = senders.setdefault(int(sends.value[row]), {})
        homes.setdefault(int(history.send_key[row]), int(sends.op[row]))

    def told(phantom: Found) -> Found:
        homes = senders.get(phantom.value, {}) if phantom.value is not None else {}
        if phantom.anomaly != "phantom" or len(homes) != 1:
            return phantom
        ((home, sent),) = homes.items()
        return msgspec.structs.replace(
            phantom,
            anomaly="misrouted",
            ops=(sent, *phantom.ops),
            why=phantom.why + f", but event {sent} sent it to {history.keys[home]}",
        )

    return [told(f) for f in found]


def aborted_reads(log: Log) -> list[Found]:
    """Values whose write certainly failed and that a poll of any outcome delivered: ``G1a``.

    The variant is ``txn`` when it was a transaction that failed: whoever reads uncommitted data
    has asked for those.
    """
    known, sends = log.known, log.sends
    failed = sends.where(sends.outcome == FAIL)
    possible = sends.value[sends.outcome != FAIL]
    failed = failed.where(~np.isin(failed.value, possible) & np.isin(failed.value, known.value))
    values = known.value[known.by_value]
    first = np.searchsorted(values, failed.value)
    return [
        Found(
            anomaly="G1a",
            key=log.key,
            offset=int(known.offset[row]),
            value=value,
            variant="txn" if txn else "send",
            ops=(op, int(known.op[row])),
            why=f"the write of value {value} by process {process} failed for certain at"
            f" {at(end_ns)}, yet process {known.process[row]} read it at offset"
            f" {known.offset[row]} at {at(known.time_ns[row])}",
        )
        for value, op, process, txn, end_ns, row in zip(
            failed.value.tolist(),
            failed.op.tolist(),
            failed.process.tolist(),
            failed.txn.tolist(),
            failed.end_ns.tolist(),
            known.by_value[first].tolist(),
            strict=True,
        )
    ]


def kernel(log: Log) -> Iterable[Found]:
    """Both."""
    return chain(phantoms(log), aborted_reads(log))
