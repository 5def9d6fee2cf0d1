"""Availability: how long a partition took no writes, and how soon after a fault it did again."""

from dataclasses import dataclass

import numpy as np

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, Bools

STUCK_NS = 30_000_000_000
"""A partition is stuck if it acknowledges no write for this long after the last heal."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which writes were pending and none was acknowledged."""

    key: str
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """How soon a partition took a write again after a fault was healed."""

    fault: int
    key: str
    seconds: float | None
    """``None``: it never did."""


def measured(log: Log) -> tuple[Outage | None, list[Recovery]]:
    """Return what :func:`longest_outage` and :func:`recoveries` do."""
    demand = _Demand(log)
    return _longest_outage(log, demand), _recoveries(log, demand)


def longest_outage(log: Log) -> Outage | None:
    """Return the longest time in which writes were pending and none was acknowledged."""
    return _longest_outage(log, _Demand(log))


def recoveries(log: Log) -> list[Recovery]:
    """Return for each healed fault the time from the heal, or from the first write that was pending
    after it, to the next acknowledgement. A fault without a later write is left out."""
    return _recoveries(log, _Demand(log))


def _longest_outage(log: Log, demand: "_Demand") -> Outage | None:
    if not len(log.sends.op):
        return None
    begins, ends = np.empty((2, len(demand.acked) + 1), dtype=np.int64)
    begins[0], begins[1:] = log.sends.start_ns.min(), demand.acked
    ends[:-1], ends[-1] = demand.acked, log.sends.end_ns.max()
    begins = demand.since(begins)
    at_ = int((ends - begins).argmax())
    if ends[at_] <= begins[at_]:
        return None
    return Outage(log.key, int(begins[at_]), int(ends[at_]))


def _recoveries(log: Log, demand: "_Demand") -> list[Recovery]:
    healed = [interval for interval in log.faults if interval.to_ns is not None]
    if not healed:
        return []
    times_ns = np.array([interval.to_ns for interval in healed], dtype=np.int64)
    is_followed = demand.after(times_ns)
    since = demand.since(times_ns[is_followed])
    next_ = demand.acked.searchsorted(since)
    never = next_ == len(demand.acked)
    taken_ns = np.append(demand.acked, 0)[next_] - since
    return [
        Recovery(healed[fault].id, log.key, None if is_never else ns / 1e9)
        for fault, is_never, ns in zip(
            np.flatnonzero(is_followed).tolist(), never.tolist(), taken_ns.tolist(), strict=True
        )
    ]


class _Demand:
    """When writes were waiting for an acknowledgement."""

    def __init__(self, log: Log) -> None:
        order = log.sends.end_ns.argsort(kind="stable")
        self._end = log.sends.end_ns[order]
        self._next_start = np.minimum.accumulate(log.sends.start_ns[order][::-1])[::-1]
        self.acked: I64 = self._end[log.sends.outcome[order] == OK]

    def after(self, times_ns: I64) -> Bools:
        """Return whether a write was pending at each of these times, or was sent later."""
        return np.less(times_ns, self._end[-1]) if len(self._end) else times_ns < times_ns

    def since(self, times_ns: I64) -> I64:
        """Return each time, or the first one after it at which a write was pending."""
        row = self._end.searchsorted(times_ns, side="right")
        asked = row < len(self._end)
        start = self._next_start[np.minimum(row, len(self._end) - 1)]
        since: I64 = np.where(asked, np.maximum(times_ns, start), times_ns)
        return since


def stuck(log: Log) -> list[Found]:
    """Find a partition that acknowledges no write long after the last fault was healed.

    The partitions of a deleted topic accept no records.
    """
    healed = [interval.to_ns for interval in log.faults if interval.to_ns is not None]
    if not healed or len(healed) < len(log.faults) or log.is_deleted:
        return []
    after = log.sends.where(log.sends.start_ns >= max(healed))
    if not len(after.op) or (after.outcome == OK).any():
        return []
    first, last = int(after.start_ns.min()), int(after.end_ns.max())
    if last - first < STUCK_NS:
        return []
    return [
        Found(
            anomaly="stuck",
            key=log.key,
            value=int(after.value[-1]),
            ops=(int(after.op[0]), int(after.op[-1])),
            why=f"the last fault was healed at {at(max(healed))}; {len(after.op)} records were "
            f"sent after that, from {at(first)} to {at(last)}, and none was acknowledged",
        )
    ]
