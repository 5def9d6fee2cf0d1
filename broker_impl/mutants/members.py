"""Bugs in what a group coordinator answers to members that act at the wrong time, or not at all."""

import math
from collections.abc import Mapping

from broker_impl.coordinator.groups import rebalance
from broker_impl.coordinator.groups.events import Effect, Written
from broker_impl.coordinator.groups.group_state import Done, GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import MemberRecord
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant


@mutant(
    "commit-while-completing",
    of="broker_impl.coordinator.groups.rules:commit_state_error",
    source="G1",
    kind="mutation",
    symptom="invariant:member-refused",
    schedule="A member commits between its JoinGroup and its SyncGroup.",
)
def commit_state_error(state: GroupStatus) -> ErrorCode:
    """A member may commit before it knows its assignment.

    It commits for the partitions that it had, which another member may be about to receive.
    """
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if state is GroupStatus.DEAD else ErrorCode.NONE


@mutant(
    "heartbeat-hides-rebalance",
    of="broker_impl.coordinator.groups.rules:heartbeat_state_error",
    source="G1, KIP-62",
    kind="mutation",
    symptom="invariant:member-refused",
    schedule="A member joins a group whose other members only send heartbeats.",
)
def heartbeat_state_error(state: GroupStatus) -> ErrorCode:
    """Heartbeats do not announce a rebalance.

    No member joins again, so that each rebalance lasts until its timeout, and then removes all
    members but the new ones.
    """
    return ErrorCode.NONE


@mutant(
    "static-twin-not-fenced",
    of="broker_impl.coordinator.groups.rules:member_error",
    source="KIP-345",
    kind="mutation",
    symptom="invariant:member-refused",
    schedule="Two processes have the same instance id.",
)
def member_error(
    is_member: bool, instance_id: str | None, instance_holder: str | None, member_id: str
) -> ErrorCode:
    """A static member that another one has replaced is refused as a member that is not known.

    It joins again after that error, and replaces the other one: both go on for ever.
    """
    del instance_id, instance_holder, member_id
    return ErrorCode.NONE if is_member else ErrorCode.UNKNOWN_MEMBER_ID


@mutant(
    "stays-without-joining",
    of="broker_impl.coordinator.groups.rules:is_absent",
    source="G4, KIP-62",
    kind="mutation",
    symptom="invariant:joined-as-member",
    schedule="A member sends heartbeats and does not join again until a rebalance times out.",
)
def is_absent(*, has_joined: bool, is_static: bool) -> bool:
    """A member that does not join again stays a member of the next generation.

    It receives partitions in it, of which it does not know.
    """
    return False


@mutant(
    "assignments-swapped",
    of="broker_impl.coordinator.groups.rules:share",
    source="G1",
    kind="mutation",
    symptom="invariant:assigned-as-given",
    schedule="A group of several members rebalances.",
)
def share(assignments: Mapping[str, bytes], member_id: str) -> bytes:
    """Each member receives what the leader has assigned to the next one.

    Every partition has one owner, so that no record is read twice; but a member that keeps its
    partitions (KIP-429) goes on to read what another one reads, too.
    """
    members = sorted(assignments)
    if member_id not in members:
        return b""
    return assignments[members[(members.index(member_id) + 1) % len(members)]]


@mutant(
    "group-deleted-with-members",
    of="broker_impl.coordinator.groups.rules:may_be_deleted",
    source="KIP-229",
    kind="mutation",
    symptom="invariant:group-deleted-unused",
    schedule="A client asks for the deletion of a group that has members.",
)
def may_be_deleted(state: GroupStatus, is_settled: bool) -> bool:
    """A group is deleted although it has members.

    Its offsets are gone; the members join a new group of the same name, and begin again.
    """
    return state is not GroupStatus.DEAD and is_settled


@mutant(
    "sync-any-generation",
    of="broker_impl.coordinator.groups.rules:generation_error",
    source="F03, G4",
    kind="mutation",
    symptom="invariant:member-refused",
    schedule="A member goes on in a generation that has ended.",
)
def generation_error(said: int, current: int) -> ErrorCode:
    """A request is accepted whatever generation it names.

    The leader of an earlier generation may assign the partitions of the current one.
    """
    return ErrorCode.NONE


@mutant(
    "replaced-while-completing",
    of="broker_impl.coordinator.groups.rules:static_join_rebalances",
    source="KAFKA-9801, KIP-345",
    kind="historic",
    symptom="invariant:assigned-as-given",
    schedule="A static member comes twice: the second time it joins after the rebalance has begun "
    "to complete, and before the leader has sent the assignments.",
)
def static_join_rebalances(state: GroupStatus, same_protocol: bool) -> bool:
    """A static member that comes again while a rebalance completes does not begin another one.

    The leader assigns partitions to the member id that was replaced. The member that has come
    receives nothing, and no member reads these partitions.
    """
    return state is GroupStatus.STABLE and not same_protocol


@mutant(
    "static-join-keeps-protocol",
    of="broker_impl.coordinator.groups.rules:static_join_rebalances",
    source="KIP-345",
    kind="mutation",
    symptom="invariant:unexpected-error",
    schedule="A static member comes again, and does not support the protocol of its group any "
    "more.",
)
def static_join_rebalances_while_completing(state: GroupStatus, same_protocol: bool) -> bool:
    """A static member that comes again begins no rebalance, whatever protocols it supports.

    The group goes on with a protocol that the member does not support, and which the coordinator
    does not find when it stores the members.
    """
    return state is GroupStatus.COMPLETING


@mutant(
    "changed-subscription-ignored",
    of="broker_impl.coordinator.groups.rules:is_same_subscription",
    source="G1, KIP-62",
    kind="mutation",
    symptom="invariant:subscribed-as-sent",
    schedule="A member of a stable group that is not its leader joins again with another "
    "subscription.",
)
def is_same_subscription(known: Mapping[str, bytes], sent: Mapping[str, bytes]) -> bool:
    """A member that joins again is answered as before, unless it supports other protocols.

    No rebalance begins, and the leader does not assign what the member subscribes to now.
    """
    return known.keys() == sent.keys()


@mutant(
    "txn-offsets-of-any-member",
    of="broker_impl.coordinator.groups.rules:transaction_error",
    source="KIP-447",
    kind="mutation",
    symptom="invariant:member-refused",
    schedule="A producer commits offsets in a transaction for a member that was replaced or "
    "removed.",
)
def transaction_error(
    is_member: bool, instance_holder: str | None, member_id: str, said: int, current: int
) -> ErrorCode:
    """Offsets are committed in a transaction whatever member and generation the request names.

    A member that does not know yet that it was removed commits for partitions that belong to other
    members now, which have already begun to read them.
    """
    return ErrorCode.NONE


@mutant(
    "rejoin-not-stored",
    of="broker_impl.coordinator.groups.static_members:store_members",
    source="KAFKA-10284, KIP-345",
    kind="historic",
    symptom="invariant:members-as-stored",
    schedule="A static member comes again, and then another broker becomes the coordinator.",
)
def store_members(group: GroupState, done: Done, effects: list[Effect]) -> None:
    """The new id of a static member that comes again is not written to the log.

    The next coordinator knows only the former id: it fences the member that has joined, and accepts
    requests of the process that the member has replaced.
    """
    done(Written(number=0, error=ErrorCode.NONE, offset=-1), 0.0, effects)


@mutant(
    "rebalance-waits-for-fastest",
    of="broker_impl.coordinator.groups.rules:rebalance_deadline",
    source="KIP-62",
    kind="mutation",
    symptom="invariant:removed-after-timeout",
    schedule="Two members have different rebalance timeouts, and the one with the longer timeout "
    "joins after the shorter one.",
)
def rebalance_deadline(now: float, timeouts_ms: list[int]) -> float:
    """A rebalance waits for members only for the shortest timeout of any of them.

    A member that needs longer to process its records is removed although it sends heartbeats. Its
    partitions belong to another member, which reads these records again.
    """
    return now + min(timeouts_ms, default=0) / 1000


@mutant(
    "sync-awaited-for-ever",
    of="broker_impl.coordinator.groups.rules:sync_deadline",
    source="KAFKA-12890",
    kind="historic",
    symptom="invariant:rebalance-in-time",
    schedule="A member joins and sends heartbeats, but no SyncGroup.",
)
def sync_deadline(now: float, rebalance_timeout_s: float) -> float:
    """A member that has joined and never sends SyncGroup is not removed.

    If it is the leader of the group, no member gets partitions, for as long as it sends heartbeats.
    """
    return math.inf


@mutant(
    "leader-joins-without-rebalance",
    of="broker_impl.coordinator.groups.rules:rejoin_rebalances",
    source="G1",
    kind="mutation",
    symptom="invariant:joined-as-member",
    schedule="The leader of a stable group joins again.",
)
def rejoin_rebalances(state: GroupStatus, *, is_unchanged: bool, is_leader: bool) -> bool:
    """A leader that joins again is answered as any other member, in the current generation.

    It has joined because its topics have other partitions now. Nothing is assigned, and no member
    reads the new partitions.
    """
    return state not in (GroupStatus.STABLE, GroupStatus.COMPLETING) or not is_unchanged


@mutant(
    "group-one-too-large",
    of="broker_impl.coordinator.groups.rules:is_full",
    source="KIP-389",
    kind="mutation",
    symptom="invariant:joined-as-member",
    schedule="More members join a group than group.max.size permits.",
)
def is_full(members: int, size_max: int) -> bool:
    """A group accepts one member more than group.max.size.

    The limit keeps a coordinator from groups that are too large for it, and a group of the size
    that was planned for, such as one member for each license, is larger than it may be.
    """
    return members > size_max


@mutant(
    "empty-group-not-stored",
    of="broker_impl.coordinator.groups.storing:store_empty",
    source="G4",
    kind="mutation",
    symptom="invariant:members-as-stored",
    schedule="The last member of a group leaves, another broker becomes the coordinator, and the "
    "group is used again.",
)
def store_empty(group: GroupState, effects: list[Effect]) -> None:
    """That a group has lost its last member is not written to the log.

    The next coordinator has the members again, until their sessions expire. The next member waits
    for them in a rebalance, and a consumer without a membership cannot commit offsets.
    """


@mutant(
    "topics-not-restored",
    of="broker_impl.coordinator.groups.restoring:topics_in_use",
    source="G4, KIP-211, KAFKA-8954",
    kind="mutation",
    symptom="invariant:members-as-stored",
    schedule="Another broker becomes the coordinator of a group that goes on.",
)
def topics_in_use(group: GroupState) -> frozenset[str] | None:
    """A coordinator that loads a group does not compute what its members are subscribed to.

    Offsets of these topics expire and can be deleted until the next rebalance, although members
    read on. The next owner of a partition starts from the beginning or the end of the log.
    """
    return frozenset()


@mutant(
    "session-not-restored",
    of="broker_impl.coordinator.groups.restoring:session_timeout_ms",
    source="G4, KIP-62",
    kind="mutation",
    symptom="invariant:members-as-stored",
    schedule="Another broker becomes the coordinator of a group whose members have a rebalance "
    "timeout that differs from their session timeout.",
)
def session_timeout_ms(row: MemberRecord) -> int:
    """A coordinator that loads a group takes the rebalance timeout for the session timeout.

    With the defaults of Java's consumer, the partitions of a consumer that has crashed wait for
    five minutes until another member gets them.
    """
    return row.rebalance_timeout_ms


@mutant(
    "static-member-stays",
    of="broker_impl.coordinator.groups.liveness:leaves",
    source="KIP-345",
    kind="mutation",
    symptom="invariant:left-as-acknowledged",
    schedule="A static member leaves its group, or a tool removes it.",
)
def leaves(
    group: GroupState, member_id: str, instance_id: str | None, now: float, effects: list[Effect]
) -> ErrorCode:
    """LeaveGroup does not remove a static member, because its process may come again.

    Static members do not send it when they end. If a tool removes one, because its process does not
    come again, its partitions are read by no member until its session expires.
    """
    if instance_id is not None or member_id in group.static.values():
        return ErrorCode.NONE
    error = group.member_error(member_id, instance_id)
    if error is ErrorCode.NONE:
        rebalance.lose(group, group.members[member_id], now, effects)
    return error


@mutant(
    "wait-counts-as-silence",
    of="broker_impl.coordinator.groups.rebalance:begin_session",
    source="KIP-62",
    kind="mutation",
    symptom="invariant:removed-after-timeout",
    schedule="A member that was in the group before waits in a rebalance for longer than its "
    "session timeout.",
)
def begin_session(member: Member, now: float) -> None:
    """The session of a member goes on while its JoinGroup waits for the slowest member.

    It sends no heartbeat meanwhile. It is removed when it receives its answer, which begins another
    rebalance, in which the others wait.
    """
    if member.is_new:
        member.restart_session(now)
