"""Rules that the guarantees of a group depend on, each a function called through this module.

They decide which members belong to which generation, which are fenced, when a member is removed,
and which of two committed offsets counts. Times are seconds of the loop unless a name says
otherwise.
"""

import math
from collections.abc import Mapping, Sequence

from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Offset

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
    """May this member make requests? ``instance_holder``: the member that has its instance id.

    A static member that another one has replaced is fenced, rather than unknown (KIP-345).
    """
    if instance_id is not None:
        if instance_holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if instance_holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if is_member else ErrorCode.UNKNOWN_MEMBER_ID


def generation_error(said: int, current: int) -> ErrorCode:
    """Is the request's generation the current one?"""
    return ErrorCode.NONE if said == current else ErrorCode.ILLEGAL_GENERATION


def next_generation(current: int) -> int:
    """The generation after a rebalance; requests with an older one are rejected."""
    return current + 1


def names_nobody(member_id: str, instance_id: str | None, generation: int) -> bool:
    """Does a commit come from a client without a group membership, which assigns itself?"""
    return generation < 0 and member_id == NO_MEMBER and instance_id is None


def outsider_error(state: GroupStatus) -> ErrorCode:
    """May offsets be committed without a member? Only while the group has none."""
    return ErrorCode.NONE if state is GroupStatus.EMPTY else ErrorCode.UNKNOWN_MEMBER_ID


def transaction_error(
    is_member: bool, instance_holder: str | None, member_id: str, said: int, current: int
) -> ErrorCode:
    """May a producer commit offsets in a transaction? What its request names must be correct.

    Producers before KIP-447 name neither member nor generation: only their epoch fences them. As in
    Kafka 2.8, an instance id that no member has does not matter.

    instance_holder: the member that has the instance id that the request names; None: no member.
    """
    if instance_holder not in (None, member_id):
        return ErrorCode.FENCED_INSTANCE_ID
    named = member_id != NO_MEMBER
    of_member = ErrorCode.UNKNOWN_MEMBER_ID if named and not is_member else ErrorCode.NONE
    return committer_error(of_member, current if said < 0 else said, current)


def committer_error(of_member: ErrorCode, said: int, current: int) -> ErrorCode:
    """May a client commit: is it a member, of the current generation (KAFKA-2596)?

    A member that was removed does not know it yet; its partitions belong to other members now.
    """
    return of_member or generation_error(said, current)


def counts_at_once(producer_id: int) -> bool:
    """Does a commit count once it is stored? One of a transaction waits for its marker (KIP-98)."""
    return producer_id < 0


def commit_state_error(state: GroupStatus) -> ErrorCode:
    """May a member commit in this state? Not while a rebalance completes: partitions are moving."""
    if state is GroupStatus.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if state is GroupStatus.COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def heartbeat_state_error(state: GroupStatus) -> ErrorCode:
    """The answer to a member's heartbeat in this state: in a rebalance it must join again."""
    return ErrorCode.REBALANCE_IN_PROGRESS if state is GroupStatus.PREPARING else ErrorCode.NONE


def is_full(members: int, size_max: int) -> bool:
    """Has a group no room for another member (KIP-389)?"""
    return members >= size_max


def rejoin_rebalances(state: GroupStatus, *, is_unchanged: bool, is_leader: bool) -> bool:
    """Must a member that joins again wait for another generation?

    It must if it supports other protocols or has another subscription, which the leader has not
    seen. A leader joins again in Stable because the partitions of its topics have changed.
    """
    if state is GroupStatus.COMPLETING:
        return not is_unchanged
    return state is not GroupStatus.STABLE or not is_unchanged or is_leader


def is_absent(*, has_joined: bool, is_static: bool) -> bool:
    """Is a member removed because it has not joined again in time? Static members are not."""
    return not has_joined and not is_static


def share(assignments: Mapping[str, bytes], member_id: str) -> bytes:
    """What the group's leader has assigned to a member; empty if it has left the member out."""
    return assignments.get(member_id, b"")


def has_expired(deadline: float, now: float) -> bool:
    """Has a member been silent for its session timeout?"""
    return now >= deadline


def sync_deadline(now: float, rebalance_timeout_s: float) -> float:
    """The time at which members that have not sent SyncGroup are removed (KAFKA-12890)."""
    return now + rebalance_timeout_s


def is_same_subscription(known: Mapping[str, bytes], sent: Mapping[str, bytes]) -> bool:
    """Does a member join again with what the group already knows of it?

    Then it has not received its answer, and no rebalance is necessary. Both map each protocol to
    the member's subscription, the preferred protocol first: another order may decide for another
    protocol.
    """
    return list(known.items()) == list(sent.items())


def static_join_rebalances(state: GroupStatus, same_protocol: bool) -> bool:
    """Must a static member that comes back start a rebalance?

    Not in Stable, which is the purpose of static members, unless the group would choose another
    protocol. While a rebalance completes it must: the leader's assignment names its old member id
    (KAFKA-9801).
    """
    if state is GroupStatus.STABLE:
        return not same_protocol
    return state is GroupStatus.COMPLETING


def counts_as_stored(error: ErrorCode) -> bool:
    """Is a record safely stored, so that members may learn of it (KAFKA-2017)?"""
    return error is ErrorCode.NONE


def fate(markers: Sequence[tuple[Offset, bool]], at: Offset) -> tuple[Offset, bool] | None:
    """The marker that ended the transaction of the record at ``at``; None: it is still open.

    Returns the marker's offset, and whether it committed. ``markers`` are those of the producer
    that the log has reported already. A marker and the records that it ends may become replicated
    together, and are reported in either order.
    """
    return next(((marker, is_commit) for marker, is_commit in markers if marker > at), None)


def supersedes(new: Offset, old: Offset | None) -> bool:
    """Which of two commits for one partition counts? The later one in the log (KAFKA-5247)."""
    return old is None or new >= old


def assignment_error(error: ErrorCode) -> ErrorCode:
    """The error that members get when an assignment could not be written."""
    if error is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return _UNSTORED.get(error, error)


def commit_error(error: ErrorCode) -> ErrorCode:
    """The error that a client gets when its offsets could not be written."""
    if error in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _UNSTORED.get(error, error)


def is_subscribed(subscribed: frozenset[str] | None, topic: str) -> bool:
    """May the group be reading this topic? Yes if its topics are not known (KAFKA-8954)."""
    return subscribed is None or topic in subscribed


def is_settled(*, is_writing: bool, is_pending: bool) -> bool:
    """Are all commits finished: written, and their transactions ended (KAFKA-19163)?"""
    return not is_writing and not is_pending


def may_be_deleted(state: GroupStatus, is_settled: bool) -> bool:
    """May a group be deleted? Only without members and without unfinished commits.

    A commit that is being written, or waits for its transaction, would come back with the next
    coordinator.
    """
    return state is GroupStatus.EMPTY and is_settled


def expires_at_ms(committed_ms: int, expires_ms: int, retention_ms: int, unused_since: int) -> int:
    """When an offset expires (KIP-211), in milliseconds of the wall clock.

    ``unused_since``: since when the group has had no members; -1: it does not apply.
    """
    if expires_ms >= 0:
        return expires_ms
    return max(committed_ms, unused_since) + retention_ms


def rebalance_deadline(now: float, timeouts_ms: list[int]) -> float:
    """How long a rebalance waits for members: the longest timeout of any of them (KIP-62)."""
    return now + max(timeouts_ms, default=0) / 1000
