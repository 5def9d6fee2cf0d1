"""Results of a log's operations: the offsets of an append, and a record found by its time."""

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
