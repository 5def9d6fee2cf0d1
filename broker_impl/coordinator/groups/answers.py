"""Answers to the parked joins and syncs of a group's members."""

from collections.abc import Iterable

from broker_impl.coordinator.groups.events import Answered, Effect, JoinAnswer, SyncAnswer
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.errors import ErrorCode


def answer_join(member: Member, error: ErrorCode, effects: list[Effect]) -> None:
    """Answer a member's parked join with an error."""
    assert member.joining is not None, "a waiting JoinGroup request is answered"
    member_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.id
    answer = JoinAnswer(error=error, member_id=member_id)
    effects.append(Answered(member.joining, answer))
    member.joining = None


def answer_sync(member: Member, error: ErrorCode, effects: list[Effect]) -> None:
    """Answer a member's parked sync with an error."""
    assert member.syncing is not None, "a waiting SyncGroup request is answered"
    effects.append(Answered(member.syncing, SyncAnswer(error=error)))
    member.syncing = None


def joined(group: GroupState, member: Member) -> JoinAnswer:
    """A member's view of the current generation; only the leader gets the list of members."""
    assert group.protocol is not None, "every generation has a protocol"
    members: Iterable[Member] = group.members.values() if member.id == group.leader else ()
    return JoinAnswer(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        member_id=member.id,
        members=tuple(
            (each.id, each.instance_id, each.protocols[group.protocol]) for each in members
        ),
    )


def assigned(group: GroupState, member: Member) -> SyncAnswer:
    """A member's share of the partitions."""
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        assignment=member.assignment,
    )
