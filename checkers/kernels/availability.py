"""Availability: for how long each key took no writes, and how soon after a fault it did again."""

import msgspec
import numpy as np

from checkers.kernels.rows import I64, OK, Found, Log, at

STUCK_NS = 30_000_000_000
"""A key that is asked for this long after the last heal and takes nothing is stuck."""


class Outage(msgspec.Struct, frozen=True):
    """The longest time without an acknowledgement, while writes were asked for."""

    key: str
    from_ns: int
    to_ns: int


class Recovery(msgspec.Struct, frozen=True):
    """How soon a key took a write again after a fault was healed."""

    fault: int
    key: str
    seconds: float | None
    """``None``: it never did, or nobody asked."""


def longest_outage(log: Log) -> Outage | None:
    """Between two acknowledgements (the first write asked for counts as one; so does the last)."""
    if not len(log.sends.op):
        return None
    acked = np.sort(log.sends.end_ns[log.sends.outcome == OK])
    first, last = log.sends.start_ns.min(), max(log.sends.end_ns.max(), acked.max(initial=0))
    times: I64 = np.concatenate(([first], acked, [last]))
    gaps = np.diff(times)
    at_ = int(gaps.argmax())
    return Outage(log.key, int(times[at_]), int(times[at_ + 1]))


def recoveries(log: Log) -> list[Recovery]:
    """Of each fault that was healed: until the next acknowledgement."""
    acked = np.sort(log.sends.end_ns[log.sends.outcome == OK])
    found = []
    for band in log.faults:
        if band.to_ns is not None:
            next_ = int(np.searchsorted(acked, band.to_ns))
            seconds = (int(acked[next_]) - band.to_ns) / 1e9 if next_ < len(acked) else None
            found.append(Recovery(band.id, log.key, seconds))
    return found


def stuck(log: Log) -> list[Found]:
    """A key that took writes and takes none any more, long after the last fault was healed."""
    healed = [band.to_ns for band in log.faults if band.to_ns is not None]
    if not healed or len(healed) < len(log.faults):
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
            why=f"the last fault was healed at {at(max(healed))}; {len(after.op)} records were"
            f" sent after it, from {at(first)} to {at(last)}, and none was acknowledged",
        )
    ]
