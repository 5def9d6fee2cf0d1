"""SyncGroup: the leader's assignment is stored first, then each member gets its share."""

from collections.abc import Mapping

from broker_impl.coordinator.groups import answers, rebalance, rules, storing
from broker_impl.coordinator.groups.events import Answered, Effect, Sync, Written
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode


def on_sync(group: GroupState, sync: Sync, now: float, effects: list[Effect]) -> None:
    """Answer a member with its assignment, or park its request until the leader's is stored."""
    error = _sync_error(group, sync)
    if error is not ErrorCode.NONE:
        effects.append(Answered(sync.ticket, sync.refused(error)))
        return
    member = group.members[sync.member_id]
    member.restart_session(now)
    group.unsynced.pop(member.id, None)
    if group.state is GroupStatus.STABLE:
        effects.append(Answered(sync.ticket, answers.assigned(group, member)))
    else:
        _park(group, member, sync, effects)
    if not group.unsynced:
        group.sync_deadline = rules.NEVER


def _park(group: GroupState, member: Member, sync: Sync, effects: list[Effect]) -> None:
    """Let a member's sync wait for the assignment, and answer one that waited before."""
    if member.syncing is not None:
        answers.answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
    member.syncing = sync.ticket
    if member.id == group.leader:
        _store_assignments(group, sync.assignments, effects)


def _sync_error(group: GroupState, sync: Sync) -> ErrorCode:
    if group.state is GroupStatus.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.member_error(sync.member_id, sync.instance_id)
    if error is ErrorCode.NONE:
        error = rules.generation_error(sync.generation, group.generation)
    if error is not ErrorCode.NONE:
        return error
    if sync.protocol_type is not None and sync.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupStatus.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if sync.protocol is not None and sync.protocol != group.protocol:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _store_assignments(
    group: GroupState, given: Mapping[str, bytes], effects: list[Effect]
) -> None:
    """Write the assignment before any member gets it (KAFKA-2017).

    A member that the leader left out gets an empty assignment.
    """
    generation = group.generation
    assignments = {member_id: rules.share(given, member_id) for member_id in group.members}

    def done(written: Written, now: float, effects: list[Effect]) -> None:
        if group.state is not GroupStatus.COMPLETING or group.generation != generation:
            return
        if not rules.counts_as_stored(written.error):
            rebalance.reset_assignments(group, rules.assignment_error(written.error), now, effects)
            rebalance.start(group, now, effects)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
        group.become(GroupStatus.STABLE)
        _answer_parked(group, now, effects)

    storing.write(group, [storing.group_record(group, assignments)], done, effects)


def _answer_parked(group: GroupState, now: float, effects: list[Effect]) -> None:
    for member in group.members.values():
        if member.syncing is not None:
            effects.append(Answered(member.syncing, answers.assigned(group, member)))
            member.syncing = None
            member.restart_session(now)
