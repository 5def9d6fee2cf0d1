"""Results of a log's operations: appended offsets, records found by time, deleted segments."""

from typing import Final, NamedTuple

from broker_impl.wire.types import Epoch, Offset

NO_LIMIT: Final = 2**63 - 1


class Appended(NamedTuple):
    """The offsets of appended batches. Without any, `last_offset` is `base_offset` - 1."""

    base_offset: Offset
    last_offset: Offset
    """Inclusive."""
    log_append_time: int
    """Milliseconds; -1 if the producer's timestamps apply."""
    duplicate: bool = False
    """Were the batches in the log already? Then nothing was written."""


class TimestampOffset(NamedTuple):
    """A record that was found by its timestamp."""

    timestamp: int
    offset: Offset
    leader_epoch: Epoch


class Retained(NamedTuple):
    """The first segment of a log, and the log, after retention has looked at it."""

    base_offset: Offset
    next_offset: Offset
    segment_bytes: int
    is_active: bool
    start_offset: Offset
    """The first offset that can be read."""
    log_bytes: int
    high_watermark: Offset
    at_ms: int
    """When that was, by the clock of the broker."""
    retention_bytes: int
    """-1: no limit, or segments are not deleted by size."""
    retention_ms: int
    """-1: no limit, or segments are not deleted by time."""
    cuts: int
    """How often the log had been truncated."""


class Deleted(NamedTuple):
    """A segment that retention has deleted, and what the log was like then."""

    number: int
    """Counts the segments that retention has deleted since the start."""
    base_offset: Offset
    next_offset: Offset
    start_offset: Offset
    """The first offset that could be read before."""
    bytes_left: int
    """The size of the segments that remained."""
    at_ms: int
    """When it was deleted, by the clock of the broker."""
    retention_bytes: int
    """-1: no limit, or segments are not deleted by size."""
    retention_ms: int
    """-1: no limit, or segments are not deleted by time."""
