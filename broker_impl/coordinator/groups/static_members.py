"""A static member rejoins under a new member id without a rebalance (KIP-345)."""

import msgspec

from broker_impl.coordinator.groups import answers, rebalance, rules, storing
from broker_impl.coordinator.groups.events import Answered, Effect, Join, JoinAnswer, Written
from broker_impl.coordinator.groups.group_state import Done, GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode


def rejoin(group: GroupState, join: Join, now: float, effects: list[Effect]) -> None:
    """Let a restarted static member replace its former member id, which is fenced (KIP-345)."""
    assert join.instance_id is not None, "static members have an instance id"
    former_id = group.static[join.instance_id]
    leader = group.leader
    former = _join_as(group.members[former_id], join.ticket)
    member = _replace(group, former_id, join.fresh_id, effects)
    member.update(join)
    member.client_id, member.client_host = join.client_id, join.client_host
    member.restart_session(now)
    keeps_protocol = rebalance.choose_protocol(group) == group.protocol
    is_preparing = group.state is GroupStatus.PREPARING
    if is_preparing or rules.static_join_rebalances(group.state, keeps_protocol):
        member.joining = join.ticket
        rebalance.start(group, now, effects)
        return

    def done(written: Written, now: float, effects: list[Effect]) -> None:
        if group.static.get(join.instance_id or "") != join.fresh_id:
            answer = join.refused(ErrorCode.FENCED_INSTANCE_ID)
        elif rules.counts_as_stored(written.error):
            answer = _rejoined(group, join, leader or "")
        else:
            _restore(group, _replace(group, join.fresh_id, former_id, effects), former)
            group.members[former_id].restart_session(now)
            answer = join.refused(rules.assignment_error(written.error))
        effects.append(Answered(join.ticket, answer))

    store_members(group, done, effects)


def _restore(group: GroupState, member: Member, former: Join) -> None:
    """Give a member its former timeouts, and its protocols if the group can still use them.

    Another member may have joined with a protocol that only the later join supported, and a
    rebalance may have chosen such a protocol.
    """
    protocols = member.protocols
    member.update(former)
    is_chosen = group.state in (GroupStatus.COMPLETING, GroupStatus.STABLE)
    if not rebalance.common_protocols(group) or (
        is_chosen and group.protocol not in member.protocols
    ):
        member.protocols = protocols


def _join_as(member: Member, ticket: int) -> Join:
    """The join that restores a member's present protocols and timeouts."""
    return Join(
        ticket=ticket,
        member_id=member.id,
        fresh_id=member.id,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(member.protocols.items()),
    )


def _rejoined(group: GroupState, join: Join, former_leader: str) -> JoinAnswer:
    """The answer to a rejoin in the same generation; a leader must not assign again."""
    answer = answers.joined(group, group.members[join.fresh_id])
    if answer.leader != join.fresh_id:
        return answer
    if join.may_skip_assignment:
        return msgspec.structs.replace(answer, skip_assignment=True)
    # Before KIP-814, it is answered as a follower.
    return msgspec.structs.replace(answer, leader=former_leader, members=())


def store_members(group: GroupState, done: Done, effects: list[Effect]) -> None:
    """Write the group, so that a static member's new id survives this broker (KAFKA-10284)."""
    assignments = {each.id: each.assignment for each in group.members.values()}
    storing.write(group, [storing.group_record(group, assignments)], done, effects)


def _replace(group: GroupState, former_id: str, member_id: str, effects: list[Effect]) -> Member:
    """Give a static member another id; requests parked under the former id are fenced."""
    member = group.members[former_id]
    if member.joining is not None:
        answers.answer_join(member, ErrorCode.FENCED_INSTANCE_ID, effects)
    if member.syncing is not None:
        answers.answer_sync(member, ErrorCode.FENCED_INSTANCE_ID, effects)
    group.members = {
        member_id if name == former_id else name: each for name, each in group.members.items()
    }
    member.id = member_id
    assert member.instance_id is not None, "only static members are replaced"
    group.static[member.instance_id] = member_id
    if group.leader == former_id:
        group.leader = member_id
    if former_id in group.unsynced:
        del group.unsynced[former_id]
        group.unsynced[member_id] = None
    return member
