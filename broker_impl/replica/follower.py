"""A follower makes its log a prefix of the leader's before it fetches in a new leader epoch."""

from typing import NamedTuple

from broker_impl.wire.types import BrokerId, Epoch, Offset

UNDEFINED = -1
"""An epoch or end offset that the asked replica cannot tell."""


class Truncation(NamedTuple):
    """Where to cut, and whether the log then agrees with the leader's."""

    offset: Offset
    agreed: bool


def compares_by(latest_epoch: Epoch) -> Epoch:
    """The epoch by which a follower compares its log with its leader's: that of its last record.

    Offsets alone do not tell whose record lies there (KIP-101).
    """
    return latest_epoch


def starts_over(former_leader: BrokerId | None, leader: BrokerId) -> bool:
    """Is the log compared with the leader's again in a new epoch?

    Always, also under the same leader: somebody else may have led in between (KAFKA-7164).
    """
    return True


def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """Where to truncate to at the start of a leader epoch; None: ask the leader first (KIP-101).

    A log without epochs has nothing to ask by, and keeps what it knows to be committed.
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
    """Where to truncate to, once the leader told where the last epoch of this log ended.

    Both answers are (epoch, end offset): ``leader_answer`` for the epoch asked for, ``own_answer``
    for the leader's epoch in this log. If the leader names an epoch that this log does not hold,
    one more question is due, by the next smaller epoch (KIP-279).
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
    """Is there anything to cut at ``offset``?

    Always: an epoch that has begun there without a record is to be forgotten (KAFKA-10706).
    """
    return True


def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """Does an answer still count? Only in the leader epoch of its question (KAFKA-7786), and for a
    follower that waits for it (KAFKA-13207)."""
    return is_awaited and asked == leader_epoch


def diverges(last_epoch: Epoch, offset: Offset, answer: tuple[Epoch, Offset]) -> bool:
    """Has a reader at ``offset`` with a last record of ``last_epoch`` another history (KIP-595)?

    ``answer`` is where the leader's log says that epoch ended.
    """
    epoch, end = answer
    return epoch < last_epoch or end < offset
