"""The high watermark: the offset below which records are committed and visible to consumers."""

from collections.abc import Iterable

from broker_impl.wire.types import BrokerId, Offset

CONSUMER = -1
"""The replica id of a consumer; other negative ids are debugging tools, which may read everything.
"""


def replicated_end(log_ends: Iterable[Offset]) -> Offset:
    """The first offset that at least one of the counted replicas does not hold."""
    return min(log_ends)


def high_watermark(current: Offset, replicated: Offset, enough_in_sync: bool) -> Offset:
    """The leader's next high watermark; within one leader epoch it never moves back.

    It does not advance while fewer than min.insync.replicas are in sync (KIP-966, KAFKA-15583):
    records that only a single remaining replica holds are not exposed, because the next leader may
    not have them.
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
    """The end of what a reader may read: replicas and tools read to the log end.

    A consumer reads up to the high watermark; with ``isolation`` 1 (read_committed), up to the last
    stable offset, where the first open transaction begins.
    """
    if replica_id != CONSUMER:
        return log_end
    return last_stable_offset if isolation else high_watermark


def listed_end(limit: Offset, high_watermark: Offset) -> Offset:
    """The offset that ListOffsets returns as the latest: the reader's own limit (KAFKA-5522)."""
    return limit


def listed_start(log_start: Offset, first_stored: Offset) -> Offset:
    """The offset that ListOffsets returns as the earliest: the start of the log.

    The first segment may begin earlier, at ``first_stored``: deleted records stay on the disk until
    all of the segment is deleted (KIP-107).
    """
    return log_start


def is_listed(offset: Offset, limit: Offset) -> bool:
    """Whether a record that was found by its time exists for this reader: it is below its limit."""
    return offset < limit


def may_list_end(high_watermark: Offset, epoch_start: Offset) -> bool:
    """Whether a new leader knows the end of its log for consumers (KIP-207, KAFKA-2334).

    Before its high watermark has reached the start of its epoch, a former leader may have returned
    a later end than this leader would.
    """
    return high_watermark >= epoch_start


def read_end(limit: Offset, log_end: Offset, *, is_leader: bool) -> Offset:
    """The end of what a replica serves to a reader with this limit, in either role (KIP-392)."""
    return limit


def last_stable_offset(
    high_watermark: Offset, first_unstable: Offset | None, log_start: Offset
) -> Offset:
    """The start of the first transaction whose end is not committed, else the high watermark.

    ``first_unstable`` is the first offset of all such transactions in the log. A transaction that
    began below the log start (records were deleted) counts from the log start.
    """
    if first_unstable is None:
        return high_watermark
    return max(log_start, min(high_watermark, first_unstable))


def deletable_end(high_watermark: Offset, log_end: Offset) -> Offset:
    """The offset up to which records may be deleted.

    Records that are not committed must stay, because a later leader may have to send them
    (KIP-107).
    """
    return high_watermark


def deletable(offset: Offset, end: Offset) -> Offset | None:
    """The new log start for a request to delete the records before ``offset``.

    -1 asks for everything up to ``end``. None means that the offset is out of range.
    """
    if offset == -1:
        return end
    return offset if 0 <= offset <= end else None


def low_watermark(leader_start: Offset, starts: Iterable[Offset]) -> Offset:
    """The lowest log start of the leader and of the live followers, -1 if one is not known.

    DeleteRecords is answered when it has reached the requested offset: any of these replicas may
    become the leader, and must not return what is deleted (KIP-107).
    """
    return min([leader_start, *starts])


def bounded(high_watermark: Offset, log_start: Offset, log_end: Offset) -> Offset:
    """A high watermark from elsewhere (a leader, a checkpoint), limited to this log's range."""
    return max(log_start, min(high_watermark, log_end))


def without_replica(checkpointed: Offset) -> Offset:
    """The high watermark to checkpoint for a log that no controller has mentioned since the start.

    It is the value that was read at the start: a replica that has no role yet knows nothing newer
    (KAFKA-769).
    """
    return checkpointed
