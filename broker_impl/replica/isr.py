"""The rules of the in-sync replica set: which followers join, which leave, how many are enough."""

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import BrokerId, Epoch, Offset


def may_join(
    follower_end: Offset, high_watermark: Offset, epoch_start: Offset, eligible: bool
) -> bool:
    """Return whether this follower may join the ISR.

    It must hold everything that is committed, and must have reached the start of the leader's
    epoch: the leader's own high watermark may lag behind what was committed before that epoch
    (KAFKA-7128).
    """
    return eligible and follower_end >= high_watermark and follower_end >= epoch_start


def begins_there(follower_start: Offset, leader_start: Offset) -> bool:
    """Return whether the follower's log starts at the leader's log start or later.

    Only such a follower may join the ISR. Below the leader's log start, the records of a former
    leader may differ from those that were deleted since, and no comparison with the leader's log
    can detect that. If such a follower were elected, clients would read those records.
    """
    return follower_start >= leader_start or leader_start == 0


def eligible(live_epoch: Epoch | None, fetch_epoch: Epoch) -> bool:
    """Return whether the fetching broker is the incarnation that is registered (KIP-841, KIP-903).

    ``live_epoch`` is None for a broker that is not registered; -1 on either side means unknown.
    """
    if live_epoch is None:
        return False
    return live_epoch == fetch_epoch or -1 in (live_epoch, fetch_epoch)


def out_of_sync(
    follower_end: Offset, leader_end: Offset, now: float, caught_up_at: float, lag_max: float
) -> bool:
    """Return whether this follower must leave the ISR.

    A follower that holds everything that the leader holds never has to leave (KAFKA-7152). Times
    are in seconds of one clock; ``lag_max`` is replica.lag.time.max.ms.
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
    """Return when this follower last had all of the leader's log, if it now fetches at ``offset``.

    That is now, if the follower holds everything. It is the time of its previous fetch, if the
    follower holds everything that the leader held then: a follower that keeps pace with steady
    appends therefore counts as caught up.
    """
    if offset >= leader_end:
        return max(before, now)
    if offset >= last_leader_end:
        return max(before, last_fetch_at)
    return before


def maximal(committed: frozenset[BrokerId], proposed: frozenset[BrokerId]) -> frozenset[BrokerId]:
    """The ISR to assume while a change is in flight (KIP-497).

    It includes a replica that is being added, because the controller may already see it in the ISR,
    and a replica that is being removed, because the controller may not have seen the removal.
    """
    return committed | proposed


def reports_log_end(error: ErrorCode, diverged: bool, again: bool) -> bool:
    """Return whether a follower's fetch shows how much of the leader's log the follower holds.

    A failed fetch does not (KAFKA-8400), nor does a fetch by a follower whose log diverges below
    its fetch offset (KAFKA-13141). With ``again``, the fetch is another attempt of a request in
    purgatory; the leader has used its first attempt.
    """
    return error is ErrorCode.NONE and not diverged and not again


def counts(in_maximal_isr: bool, now: float, caught_up_at: float, lag_max: float) -> bool:
    """Return whether the high watermark waits for this follower.

    It waits for each member of the maximal ISR, because the controller may elect it (KIP-497). It
    also waits for a caught-up follower that is about to join; otherwise the watermark of a busy
    leader would always stay ahead of that follower.
    """
    return in_maximal_isr or now - caught_up_at <= lag_max


def written_at(zk_version: int) -> int:
    """The state znode's version on which a write of the ISR is conditional: the version known here.

    The write must not overwrite a later write of the controller (rule R14).
    """
    return zk_version


def confirms(written: int, known: int) -> bool:
    """Return whether the pending write of the ISR produced this version of the state znode.

    A successful conditional write increments the version by exactly one. Any other version is the
    late response to a write that the controller's own write has superseded (KAFKA-12686).
    """
    return written == known + 1


def looks_again() -> bool:
    """Return whether to read the state znode again after a failed write of the ISR.

    A write whose result is lost counts as failed. With an outdated version, every later write would
    be rejected too (KAFKA-2729).
    """
    return True


def enough_in_sync(in_sync: int, isr_min: int) -> bool:
    """Return whether the number of in-sync replicas reaches min.insync.replicas."""
    return in_sync >= isr_min
