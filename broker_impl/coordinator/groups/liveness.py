"""Heartbeats, departures and timeouts of members, and the end of this coordinator's term."""

from broker_impl.coordinator.groups import answers, rebalance, rules
from broker_impl.coordinator.groups.events import Answered, Effect, Heartbeat, Leave, LeaveAnswer
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode


def on_heartbeat(group: GroupState, beat: Heartbeat, now: float) -> ErrorCode:
    """Restart the member's session; during a rebalance, the answer makes it join again."""
    if group.state is GroupStatus.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.member_error(beat.member_id, beat.instance_id)
    if error is ErrorCode.NONE:
        error = rules.generation_error(beat.generation, group.generation)
    if error is not ErrorCode.NONE:
        return error
    group.members[beat.member_id].restart_session(now)
    return rules.heartbeat_state_error(group.state)


def on_leave(group: GroupState, leave: Leave, now: float, effects: list[Effect]) -> None:
    """Remove the members that leave, and start a rebalance."""
    if group.state is GroupStatus.DEAD:
        answer = leave.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        effects.append(Answered(leave.ticket, answer))
        return
    rows = tuple(
        (member_id, instance_id, leaves(group, member_id, instance_id, now, effects))
        for member_id, instance_id in leave.members
    )
    effects.append(Answered(leave.ticket, LeaveAnswer(rows=rows)))


def leaves(
    group: GroupState, member_id: str, instance_id: str | None, now: float, effects: list[Effect]
) -> ErrorCode:
    """Remove a member, static or not; return the error for it, or NONE."""
    if member_id == rules.NO_MEMBER and instance_id is not None:
        member_id = group.static.get(instance_id, rules.NO_MEMBER)
    elif instance_id is None and member_id in group.promised:
        del group.promised[member_id]
        rebalance.complete_if_all_joined(group, now, effects)
        return ErrorCode.NONE
    error = group.member_error(member_id, instance_id)
    if error is ErrorCode.NONE:
        rebalance.lose(group, group.members[member_id], now, effects)
    return error


def on_tick(group: GroupState, now: float, effects: list[Effect]) -> None:
    """Remove members whose deadlines have passed, and end a rebalance that has timed out."""
    group.promised = {
        member_id: until
        for member_id, until in group.promised.items()
        if not rules.has_expired(until, now)
    }
    for member in list(group.members.values()):
        if member.id in group.members and rules.has_expired(member.watched_until, now):
            rebalance.lose(group, member, now, effects)
    if now >= group.sync_deadline:
        group.sync_deadline = rules.NEVER
        for member_id in tuple(group.unsynced):
            rebalance.remove(group, group.members[member_id], effects)
        rebalance.start(group, now, effects)
    rebalance.complete_if_all_joined(group, now, effects)
    if now >= group.join_deadline:
        rebalance.on_join_deadline(group, now, effects)


def on_unload(group: GroupState, effects: list[Effect]) -> None:
    """Redirect all waiting members: another broker coordinates the group now."""
    for member in group.members.values():
        if member.joining is not None:
            answers.answer_join(member, ErrorCode.NOT_COORDINATOR, effects)
        if member.syncing is not None:
            answers.answer_sync(member, ErrorCode.NOT_COORDINATOR, effects)
    group.die()
