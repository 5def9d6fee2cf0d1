"""Restore a group from its record in the log, as its new coordinator."""

from broker_impl.coordinator.groups.events import Join
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import GroupRecord, MemberRecord


def restore(group: GroupState, record: GroupRecord, now: float) -> None:
    """Restore the group from its record; each member gets a full session timeout."""
    assert group.state is GroupStatus.EMPTY, "a group is restored before any other event"
    assert not group.members, "a group is restored before a member joins"
    group.generation = record.generation
    group.protocol_type = record.protocol_type or None
    group.protocol = record.protocol
    group.leader = record.leader
    if record.state_since_ms >= 0:
        group.state_since_ms = record.state_since_ms
    group.subscribed = frozenset()
    for row in record.members:
        member = group.members[row.member_id] = _member(row, record.protocol or "")
        if row.instance_id is not None:
            group.static[row.instance_id] = row.member_id
        member.restart_session(now)
    if group.members:
        group.state = GroupStatus.STABLE
        if group.leader not in group.members:
            group.leader = next(iter(group.members))
        group.subscribed = topics_in_use(group)


def topics_in_use(group: GroupState) -> frozenset[str] | None:
    """Return the topics whose offsets are kept, because members read them (KIP-211, KIP-496)."""
    return group.subscriptions()


def session_timeout_ms(row: MemberRecord) -> int:
    """Return how long a member may be silent, which differs from how long a rebalance waits."""
    return row.session_timeout_ms


def _member(row: MemberRecord, protocol: str) -> Member:
    join = Join(
        ticket=0,
        member_id=row.member_id,
        fresh_id="",
        instance_id=row.instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        session_timeout_ms=session_timeout_ms(row),
        rebalance_timeout_ms=row.rebalance_timeout_ms,
        protocols=((protocol, row.subscription),),
    )
    member = Member(row.member_id, join)
    member.assignment = row.assignment
    return member
