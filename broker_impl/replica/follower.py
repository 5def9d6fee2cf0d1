"""The rules by which a follower truncates its log to a prefix of its leader's before it fetches."""

from typing import NamedTuple

from broker_impl.wire.types import BrokerId, Epoch, Offset

UNDEFINED = -1
"""The epoch or end offset in the answer of a replica that does not know it."""


class Truncation(NamedTuple):
    """The offset to truncate to, and whether the log then agrees with the leader's."""

    offset: Offset
    agreed: bool


def compares_by(latest_epoch: Epoch) -> Epoch:
    """The epoch by which a follower compares its log with the leader's: that of its last record.

    Offsets alone do not show which leader wrote a record (KIP-101).
    """
    return latest_epoch


def starts_over(former_leader: BrokerId | None, leader: BrokerId) -> bool:
    """Return whether the follower compares its log with the leader's again in a new epoch.

    It always does, also under the same leader, because another replica may have led in the meantime
    (KAFKA-7164).
    """
    return True


def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """Where to truncate at the start of a leader epoch; None: ask the leader first (KIP-101).

    A log without epochs has no epoch to ask about, and keeps what it knows to be committed.
    """
    if latest_epoch == UNDEFINED:
        return min(high_watermark, log_end)
    return None


def truncation_point(
    leader_answer: tuple[Epoch, Offset],
    own_answer: tuple[Epoch, Offset],
    log_end: Offset,
    high_watermark: Offset,
) -> Truncation:
    """The offset to truncate to, from the leader's answer about the last epoch of this log.

    Both answers are (epoch, end offset): ``leader_answer`` for the epoch of the question,
    ``own_answer`` for the leader's epoch in this log. If the leader names an epoch that this log
    does not contain, the follower must ask once more, with the next smaller epoch (KIP-279).
    """
    leader_epoch, leader_end = leader_answer
    own_epoch, own_end = own_answer
    if leader_end == UNDEFINED:
        return Truncation(min(high_watermark, log_end), agreed=True)
    if own_epoch == UNDEFINED:
        return Truncation(min(leader_end, log_end), agreed=True)
    if own_epoch != leader_epoch:
        return Truncation(min(own_end, log_end), agreed=False)
    return Truncation(min(own_end, leader_end, log_end), agreed=True)


def cuts(offset: Offset, log_end: Offset) -> bool:
    """Return whether to truncate at ``offset``, even if it is the log end.

    Always: an epoch that began at ``offset`` without a record must be removed too (KAFKA-10706).
    """
    return True


def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """Return whether the leader's response is still valid for this follower.

    It is valid only in the leader epoch of its request (KAFKA-7786), and only while the follower
    waits for it (KAFKA-13207).
    """
    return is_awaited and asked == leader_epoch


def diverges(last_epoch: Epoch, offset: Offset, answer: tuple[Epoch, Offset]) -> bool:
    """Return whether the log of a reader at ``offset`` diverges from the leader's (KIP-595).

    ``last_epoch`` is the epoch of the reader's last record; ``answer`` is the (epoch, end offset)
    that the leader's log holds for that epoch.
    """
    epoch, end = answer
    return epoch < last_epoch or end < offset
