"""The rules that a group's guarantees hang on, each by itself.

Who is a member of which generation, who is fenced, when a member is given up, and which of two
committed offsets counts. Times are seconds of the loop unless a name says otherwise.
"""

import math
from collections.abc import Sequence

from broker_impl.coordinator.groups.states import State
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Offset

NO_GENERATION = -1
NO_MEMBER = ""
NEVER = math.inf

_UNSTORED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def member_error(
    is_member: bool, instance_id: str | None, instance_holder: str | None, member_id: str
) -> ErrorCode:
    """May this member speak for itself? ``instance_holder``: the member that has its instance id.

    A static member that somebody else has replaced is fenced, rather than unknown (KIP-345).
    """
    if instance_id is not None:
        if instance_holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if instance_holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if is_member else ErrorCode.UNKNOWN_MEMBER_ID


def generation_error(said: int, current: int) -> ErrorCode:
    """Is this of the generation of now?"""
    return ErrorCode.NONE if said == current else ErrorCode.ILLEGAL_GENERATION


def next_generation(current: int) -> int:
    """Of those who have come to a rebalance: whoever speaks of the one before it has missed it."""
    return current + 1


def names_nobody(member_id: str, instance_id: str | None, generation: int) -> bool:
    """Does a commit come from outside of any group, by a client that assigns itself?"""
    return generation < 0 and member_id == NO_MEMBER and instance_id is None


def outsider_error(state: State) -> ErrorCode:
    """May offsets be committed without a member? Only while the group has none."""
    return ErrorCode.NONE if state is State.EMPTY else ErrorCode.UNKNOWN_MEMBER_ID


def transaction_error(
    is_member: bool, instance_holder: str | None, member_id: str, said: int, current: int
) -> ErrorCode:
    """May a producer commit offsets in a transaction? What its request names must be true.

    Producers before KIP-447 name neither member nor generation: they are fenced by epoch alone. As
    in Kafka 2.8, an instance id that no member has does not matter.

    instance_holder: the member that has the instance id that the request names; None: no member.
    """
    if instance_holder not in (None, member_id):
        return ErrorCode.FENCED_INSTANCE_ID
    named = member_id != NO_MEMBER
    of_member = ErrorCode.UNKNOWN_MEMBER_ID if named and not is_member else ErrorCode.NONE
    return committer_error(of_member, current if said < 0 else said, current)


def committer_error(of_member: ErrorCode, said: int, current: int) -> ErrorCode:
    """May a member commit: is it one, and of the generation of now (KAFKA-2596)?

    Whoever was missed, and left out, does not know yet; what it has read is somebody else's now.
    """
    return of_member or generation_error(said, current)


def counts_at_once(producer_id: int) -> bool:
    """Does a commit count when it is stored? One of a transaction waits for its marker (KIP-98)."""
    return producer_id < 0


def commit_state_error(state: State) -> ErrorCode:
    """May a member commit in this state? While a rebalance completes, its partitions are moving."""
    if state is State.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if state is State.COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def has_expired(deadline: float, now: float) -> bool:
    """Has a member been silent for its session timeout?"""
    return now >= deadline


def sync_deadline(now: float, rebalance_timeout_s: float) -> float:
    """When members that have not asked for their assignment are given up (KAFKA-12890)."""
    return now + rebalance_timeout_s


def static_join_rebalances(state: State, same_protocol: bool) -> bool:
    """Must a static member that comes back start a rebalance?

    In Stable not, which is what static members are for, unless it moves the group to another
    protocol. While a rebalance completes it must: the leader's assignment names its old id
    (KAFKA-9801).
    """
    if state is State.STABLE:
        return not same_protocol
    return state is State.COMPLETING


def counts_as_stored(error: ErrorCode) -> bool:
    """Is a record safe, so that members may be told of it (KAFKA-2017)?"""
    return error is ErrorCode.NONE


def fate(markers: Sequence[tuple[Offset, bool]], at: Offset) -> tuple[Offset, bool] | None:
    """The marker that ended the transaction of the record at ``at``: its place, and whether it
    committed. None: the transaction is open, as far as is known.

    ``markers`` are those of the producer that the log has reported already. A marker and the
    records that it ends may become replicated together, and are reported in either order.
    """
    return next(((marker, is_commit) for marker, is_commit in markers if marker > at), None)


def supersedes(new: Offset, old: Offset | None) -> bool:
    """Which of two commits for one partition counts? The later one in the log (KAFKA-5247)."""
    return old is None or new >= old


def assignment_error(error: ErrorCode) -> ErrorCode:
    """What members are told when an assignment could not be written."""
    if error is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return _UNSTORED.get(error, error)


def commit_error(error: ErrorCode) -> ErrorCode:
    """What a client is told when its offsets could not be written."""
    if error in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _UNSTORED.get(error, error)


def is_subscribed(subscribed: frozenset[str] | None, topic: str) -> bool:
    """May a group be reading this topic? Of one whose topics are not known, yes (KAFKA-8954)."""
    return subscribed is None or topic in subscribed


def is_settled(*, is_writing: bool, is_pending: bool) -> bool:
    """Is all over that somebody has begun to commit: written, and its transaction ended
    (KAFKA-19163)?"""
    return not is_writing and not is_pending


def may_be_deleted(state: State, is_settled: bool) -> bool:
    """May a group go? Nobody may be in it, and nobody be committing to it.

    What is being written, or waits for its transaction, would come back with the next coordinator.
    """
    return state is State.EMPTY and is_settled


def expires_at_ms(committed_ms: int, expires_ms: int, retention_ms: int, unused_since: int) -> int:
    """When an offset may be forgotten (KIP-211), milliseconds of the wall clock.

    ``unused_since``: since when nobody has been in the group; -1 where that says nothing.
    """
    if expires_ms >= 0:
        return expires_ms
    return max(committed_ms, unused_since) + retention_ms


def rebalance_deadline(now: float, timeouts_ms: list[int]) -> float:
    """How long members are waited for: as long as the slowest of them asked (KIP-62)."""
    return now + max(timeouts_ms, default=0) / 1000
