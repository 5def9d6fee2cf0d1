"""The in-sync replicas: who may join, who must leave, how many are enough."""

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import BrokerId, Epoch, Offset


def may_join(
    follower_end: Offset, high_watermark: Offset, epoch_start: Offset, eligible: bool
) -> bool:
    """May this follower join the ISR?

    It must hold everything committed, and have reached the start of the leader's epoch, since
    the leader's own watermark may lag behind what was committed before it (KAFKA-7128).
    """
    return eligible and follower_end >= high_watermark and follower_end >= epoch_start


def begins_there(follower_start: Offset, leader_start: Offset) -> bool:
    """Does this follower know that its leader's log begins here?

    What a deposed leader holds may differ from what was deleted since; where its log and the
    leader's part is not told below the leader's start. Led by it, the partition would show that.
    """
    return follower_start >= leader_start or leader_start == 0


def eligible(live_epoch: Epoch | None, fetch_epoch: Epoch) -> bool:
    """Is the fetching broker the incarnation that is registered (KIP-841, KIP-903)?

    ``live_epoch`` is None for a broker that is not registered; -1 on either side is unknown.
    """
    if live_epoch is None:
        return False
    return live_epoch == fetch_epoch or -1 in (live_epoch, fetch_epoch)


def out_of_sync(
    follower_end: Offset, leader_end: Offset, now: float, caught_up_at: float, lag_max: float
) -> bool:
    """Must this follower leave the ISR? Never while it holds all that the leader does (KAFKA-7152).

    Times in seconds of one clock; ``lag_max`` is replica.lag.time.max.ms.
    """
    return follower_end != leader_end and now - caught_up_at > lag_max


def caught_up_at(
    before: float,
    offset: Offset,
    leader_end: Offset,
    now: float,
    last_leader_end: Offset,
    last_fetch_at: float,
) -> float:
    """When this follower last held all that the leader did, after it fetched from ``offset``.

    Now, if it holds all; the time of its fetch before this one, if it holds all that the leader
    held then: so a follower that keeps pace with steady appends counts as caught up.
    """
    if offset >= leader_end:
        return max(before, now)
    if offset >= last_leader_end:
        return max(before, last_fetch_at)
    return before


def maximal(committed: frozenset[BrokerId], proposed: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """Whom to reckon with while a change is under way (KIP-497).

    Whoever is to join, because the controller may see it already; whoever is to leave, because
    the controller may not have seen that yet.
    """
    return committed | proposed


def tells_log_end(error: ErrorCode, diverged: bool, again: bool) -> bool:
    """Does a follower's fetch tell how much of the leader's log it holds?

    Not when it failed (KAFKA-8400), nor when its history is another one up to the offset it asks
    for (KAFKA-13141); and a parked fetch that is tried ``again`` has told it already.
    """
    return error is ErrorCode.NONE and not diverged and not again


def counts(in_maximal_isr: bool, now: float, caught_up_at: float, lag_max: float) -> bool:
    """Does the high watermark wait for this follower?

    For each member of the maximal ISR, because the controller may elect it (KIP-497); and for one
    that is about to join, or a busy leader's watermark would always run ahead of it.
    """
    return in_maximal_isr or now - caught_up_at <= lag_max


def written_at(zk_version: int) -> int:
    """Which version the state znode must have for a write of the ISR: the one that we know.

    Whatever the controller has written since is not to be undone (rule R14).
    """
    return zk_version


def confirms(written: int, known: int) -> bool:
    """Is it the write under way that has made this version of the state znode?

    A conditional write makes exactly the next one. Any other is the late answer to one that the
    controller's own write has overtaken (KAFKA-12686).
    """
    return written == known + 1


def looks_again() -> bool:
    """Is the state znode read anew when a write of the ISR was refused, or may not have been done?

    By the version that is known no later write would ever be taken (KAFKA-2729).
    """
    return True


def enough_in_sync(in_sync: int, isr_min: int) -> bool:
    """Are as many replicas in sync as min.insync.replicas asks for?"""
    return in_sync >= isr_min
