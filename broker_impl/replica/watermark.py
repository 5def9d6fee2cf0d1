"""The high watermark: the offset below which records are committed, and may be shown."""

from collections.abc import Iterable

from broker_impl.wire.types import BrokerId, Offset

CONSUMER = -1
"""The replica id of a reader that is no replica; others below 0 are tools that see everything."""


def replicated_end(log_ends: Iterable[Offset]) -> Offset:
    """The first offset that one of the counted replicas has yet to hold."""
    return min(log_ends)


def high_watermark(current: Offset, replicated: Offset, enough_in_sync: bool) -> Offset:
    """The leader's next high watermark; within one leader epoch it never moves back.

    Held while fewer than min.insync.replicas are in sync (KIP-966, KAFKA-15583): what a single
    survivor alone holds is not shown, because the next leader may not have it.
    """
    if not enough_in_sync:
        return current
    return max(current, replicated)


def read_limit(
    replica_id: BrokerId,
    isolation: int,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_end: Offset,
) -> Offset:
    """Where reading ends: for consumers with what is committed, for replicas and tools nowhere.

    ``isolation`` 1 is read_committed: it ends where the first open transaction begins.
    """
    if replica_id != CONSUMER:
        return log_end
    return last_stable_offset if isolation else high_watermark


def listed_end(limit: Offset, high_watermark: Offset) -> Offset:
    """What ListOffsets calls the latest, for who may read up to ``limit``: that (KAFKA-5522)."""
    return limit


def last_stable_offset(
    high_watermark: Offset, first_unstable: Offset | None, log_start: Offset
) -> Offset:
    """Where the first transaction begins whose end is not committed; else the high watermark.

    ``first_unstable``: of all transactions in the log; one that began before what DeleteRecords
    left counts from there on.
    """
    if first_unstable is None:
        return high_watermark
    return max(log_start, min(high_watermark, first_unstable))


def deletable_end(high_watermark: Offset, log_end: Offset) -> Offset:
    """Up to where records may be deleted.

    What is not committed must stay: a leader to come may have to send it (KIP-107).
    """
    return high_watermark


def deletable(offset: Offset, end: Offset) -> Offset | None:
    """Where a log may begin that is to lose what lies before ``offset``; -1 means all up to
    ``end``, and None that it is not to be had."""
    if offset == -1:
        return end
    return offset if 0 <= offset <= end else None


def bounded(high_watermark: Offset, log_start: Offset, log_end: Offset) -> Offset:
    """A watermark from elsewhere (a leader's answer, a checkpoint) as far as this log goes."""
    return max(log_start, min(high_watermark, log_end))


def untold(checkpointed: Offset) -> Offset:
    """What to write down for a log of which no controller has spoken since the start.

    What was read then: a replica that has not been called yet knows nothing newer (KAFKA-769).
    """
    return checkpointed
