"""The rules of fetch sessions: epochs, what an incremental response shows, and evictions."""

from typing import NamedTuple

from broker_impl.errors import ErrorCode
from broker_impl.replica.results import FetchResult
from broker_impl.wire.types import Epoch, Offset

NO_SESSION = 0
"""The session id of a request or response without a session."""
CREATE, CLOSE = 0, -1
"""The session epochs of a full fetch: with a new session, or without one."""
_EPOCH_MAX = 2**31 - 1


class Sent(NamedTuple):
    """What the last response of a session said about one partition."""

    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset


NOTHING_SENT = Sent(-1, -1, -1)


class Worth(NamedTuple):
    """How valuable a session is; a full cache keeps the more valuable ones."""

    is_follower: bool
    partitions: int


def is_full(session_epoch: int) -> bool:
    """Return whether a request with this session epoch lists all of its partitions."""
    return session_epoch in (CREATE, CLOSE)


def epoch_error(session_epoch: int, expected: int) -> ErrorCode:
    """The error for an incremental request: only the one that follows the last one is served.

    A response that was lost may have shown changes that no later response would repeat.
    """
    if session_epoch == expected:
        return ErrorCode.NONE
    return ErrorCode.INVALID_FETCH_SESSION_EPOCH


def next_epoch(session_epoch: int) -> int:
    """The session epoch of the next request; after the largest number comes 1."""
    return 1 if session_epoch >= _EPOCH_MAX else session_epoch + 1


def fencing_epoch(named: Epoch, known: Epoch) -> Epoch:
    """The leader epoch against which an incremental fetch of a partition is checked.

    It is the epoch that the reader last named for this partition, not the one that is ``known``
    here: a reader that has missed an election must be fenced (KAFKA-9338).
    """
    return named


def is_remembered(held: Epoch, named: Epoch) -> bool:
    """Return whether a reader that names a partition again knows what was sent to it of this one.

    Not if it names another leader epoch: a follower ignores responses to requests of a former
    epoch, and would otherwise wait for the high watermark until that changes again.
    """
    return held == named


def sent(result: FetchResult) -> Sent:
    """What to remember of a partition's result.

    Nothing is remembered of an error or of a diverging epoch, because the reader takes nothing else
    from such a row: the partition is shown once that is over.
    """
    if result.error is not ErrorCode.NONE or result.diverging is not None:
        return NOTHING_SENT
    return Sent(result.high_watermark, result.last_stable_offset, result.log_start_offset)


def is_shown(before: Sent, result: FetchResult) -> bool:
    """Return whether an incremental response shows this partition.

    It leaves out a partition without records and errors if nothing that the reader knows of the
    partition has changed.
    """
    return (
        bool(result.records)
        or result.error is not ErrorCode.NONE
        or result.diverging is not None
        or result.preferred_read_replica >= 0
        or sent(result) != before
    )


def goes_last(result: FetchResult) -> bool:
    """Return whether the partition moves to the end of its session's order.

    One that returned records does, so that others get the room of the next response.
    """
    return bool(result.records)


def is_settled(result: FetchResult, read_at: int, changed_at: int) -> bool:
    """Return whether to read the partition again only after it has changed.

    ``read_at`` and ``changed_at`` are the numbers of its last change, when it was read and now: a
    change since the read is not part of the result.
    """
    return result.settled and read_at == changed_at


def is_stale(used_at: float, now: float, idle_max: float) -> bool:
    """Return whether a session is so long out of use that any other one may take its place."""
    return now - used_at > idle_max


def may_replace(new: Worth, old: Worth, created_at: float, now: float, protected: float) -> bool:
    """Return whether a new session may take the place of one that is in use.

    It must be more valuable. A session younger than ``protected`` seconds keeps its place, except
    that a follower's session replaces a consumer's at any time.
    """
    is_exposed = now - created_at > protected or (new.is_follower and not old.is_follower)
    return is_exposed and new > old
