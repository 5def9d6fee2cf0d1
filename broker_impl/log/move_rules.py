"""The rules by which a partition's log moves to another data directory (KIP-113).

A future log in the target directory copies the current one. It always has a prefix of the current
log's batches, or none: it is truncated with the current log, and a copy that is found when a broker
starts is emptied.
"""

from collections.abc import Sequence
from enum import Enum

from broker_impl.wire.types import Offset


class Fate(Enum):
    """What happens to a future log that is found when a broker starts."""

    STARTED_OVER = "started over"
    """It is emptied, and copies the current log from its start.

    The current log may have been truncated or compacted while the copy's directory was not in use.
    """
    PROMOTED = "promoted"
    """It becomes the current log: the broker ended after the former one was renamed."""
    DISCARDED = "discarded"
    """It is deleted: there is nothing left to copy."""


def fate(*, has_current: bool, is_complete: bool) -> Fate:
    """Return what happens to a future log after a start.

    has_current: the partition has a current log. is_complete: the future log was marked as complete
    before the broker renamed the current one. Without that mark, a current log that is missing was
    deleted, or its data directory is no longer in ``log.dirs``.
    """
    if has_current:
        return Fate.STARTED_OVER
    return Fate.PROMOTED if is_complete else Fate.DISCARDED


def may_replace(copy_end: Offset, end: Offset) -> bool:
    """Return whether a copy that ends at ``copy_end`` may replace the log that ends at ``end``.

    Each record that the copy lacks would be lost on this replica.
    """
    return copy_end == end


def cut_of_copy(offset: Offset, copy_end: Offset) -> Offset | None:
    """Return where to truncate the copy of a log that is about to be truncated to ``offset``.

    None: the copy has not reached that offset.
    """
    return offset if offset < copy_end else None


def must_start_over(copy_base: Offset, copy_end: Offset, base: Offset, start: Offset) -> bool:
    """Return whether a copy of a log must begin again at the log's first segment.

    copy_base, base: where the first segments of copy and log begin. start: the first offset of the
    log that may be read. Either the next record to copy is no longer in the log, because retention
    or DeleteRecords has deleted it. Or the copy lacks the first records of the log: it was emptied
    to follow a log that starts over, and a crash has kept that from happening to the log.
    """
    return copy_end < base or copy_base > start


def start_after(start: Offset, first_stored: Offset) -> Offset:
    """Return where a log starts after its move: where it did before.

    Its first segment may begin earlier, at ``first_stored``: deleted records stay on the disk until
    all of the segment is deleted (KIP-107).
    """
    return start


def fewest(counts: Sequence[int]) -> int:
    """Return the number of the data directory that gets a new log: the one with the fewest logs.

    counts: the logs in each directory, in the order of ``log.dirs``. The first one wins a tie.
    """
    return counts.index(min(counts))


def lag(end: Offset, copy_end: Offset | None, high_watermark: Offset) -> int:
    """Return the ``offset_lag`` of DescribeLogDirs.

    copy_end: the end of a future log, which may lag behind the current log's ``end``; None for the
    current log itself, which lags while it is shorter than the high watermark.
    """
    if copy_end is not None:
        return end - copy_end
    return max(high_watermark - end, 0)
