"""JoinGroup: check a join, admit new members, and park joins until the rebalance completes."""

from broker_impl.coordinator.groups import answers, rebalance, rules, static_members
from broker_impl.coordinator.groups.events import Answered, Effect, Join, JoinAnswer
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode

_NEW_MEMBER_TIMEOUT_S = 300.0
"""How long a new member's first join counts as a member, although its client may be gone."""


def on_join(group: GroupState, join: Join, now: float, effects: list[Effect]) -> None:
    """Admit or reject a member that joins; its answer may wait for the rebalance to complete."""
    refusal = _join_error(group, join)
    if refusal is not ErrorCode.NONE:
        effects.append(Answered(join.ticket, join.refused(refusal)))
    elif join.member_id != rules.NO_MEMBER:
        _known_member_joins(group, join, now, effects)
    elif join.instance_id is not None and join.instance_id in group.static:
        static_members.rejoin(group, join, now, effects)
    elif join.instance_id is None and join.requires_id:
        group.promised[join.fresh_id] = now + join.session_timeout_ms / 1000
        answer = JoinAnswer(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=join.fresh_id)
        effects.append(Answered(join.ticket, answer))
    else:
        _add(group, join.fresh_id, join, now, effects)
    rebalance.complete_if_all_joined(group, now, effects)


def _join_error(group: GroupState, join: Join) -> ErrorCode:
    config = group.config
    if group.state is GroupStatus.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    low, high = config.session_timeout_min_ms, config.session_timeout_max_ms
    if not low <= join.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if not _supports(group, join):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_static = join.instance_id is not None and join.instance_id in group.static
    is_counted = is_static or join.member_id in group.members
    if not is_counted and rules.is_full(len(group.members), config.size_max):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE


def _supports(group: GroupState, join: Join) -> bool:
    """Does the joining member share a protocol with all other members?"""
    itself = [join.member_id]
    if join.instance_id is not None and join.instance_id in group.static:
        itself.append(group.static[join.instance_id])
    others = [member for member in group.members.values() if member.id not in itself]
    if not join.protocol_type or not join.protocols:
        return False
    if not others:
        return not group.members or join.protocol_type == group.protocol_type
    return join.protocol_type == group.protocol_type and any(
        all(name in member.protocols for member in others) for name, _ in join.protocols
    )


def _known_member_joins(group: GroupState, join: Join, now: float, effects: list[Effect]) -> None:
    if join.instance_id is None and join.member_id in group.promised:
        del group.promised[join.member_id]
        _add(group, join.member_id, join, now, effects)
        return
    error = group.member_error(join.member_id, join.instance_id)
    if error is not ErrorCode.NONE:
        effects.append(Answered(join.ticket, join.refused(error)))
        return
    member = group.members[join.member_id]
    is_unchanged = rules.is_same_subscription(member.protocols, dict(join.protocols))
    is_leader = member.id == group.leader
    if rules.rejoin_rebalances(group.state, is_unchanged=is_unchanged, is_leader=is_leader):
        _park(group, member, join, effects)
        rebalance.start(group, now, effects)
    else:
        # Perhaps it did not get the answer to its join: answer again.
        effects.append(Answered(join.ticket, answers.joined(group, member)))
        member.restart_session(now)


def _add(group: GroupState, member_id: str, join: Join, now: float, effects: list[Effect]) -> None:
    if not group.members:
        group.protocol_type = join.protocol_type
    if group.initial_left_s is not None and group.generation == 0:
        group.joined_meanwhile = True
    member = group.members[member_id] = Member(member_id, join)
    member.joining = join.ticket
    member.deadline = now + _NEW_MEMBER_TIMEOUT_S
    if member.instance_id is not None:
        group.static[member.instance_id] = member_id
    if group.leader is None:
        group.leader = member_id
    rebalance.start(group, now, effects)


def _park(group: GroupState, member: Member, join: Join, effects: list[Effect]) -> None:
    """Let a member's join wait for the others, and answer one that waited before."""
    if member.joining is not None:
        answers.answer_join(member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
    member.update(join)
    member.joining = join.ticket
