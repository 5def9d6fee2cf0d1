"""A rebalance: wait for the members to join again, then begin a new generation with them."""

from broker_impl.coordinator.groups import answers, rules, states, storing
from broker_impl.coordinator.groups.events import Answered, Effect
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.members import Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode


def start(group: GroupState, now: float, effects: list[Effect]) -> None:
    """Start a rebalance: wait for all members to join again, unless one is in preparation."""
    if not states.may_follow(GroupStatus.PREPARING, group.state):
        return
    if group.state is GroupStatus.COMPLETING:
        reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, now, effects)
    group.unsynced.clear()
    group.sync_deadline = rules.NEVER
    group.join_deadline = rules.rebalance_deadline(now, group.rebalance_timeouts_ms)
    if group.state is GroupStatus.EMPTY:
        delay = group.config.initial_rebalance_delay_ms / 1000
        group.initial_left_s = max(group.join_deadline - now - delay, 0)
        group.joined_meanwhile = False
        group.join_deadline = now + delay
    group.become(GroupStatus.PREPARING)


def complete_if_all_joined(group: GroupState, now: float, effects: list[Effect]) -> None:
    """End the wait for members once all have joined, unless an initial delay is running."""
    if (
        group.state is GroupStatus.PREPARING
        and group.initial_left_s is None
        and not group.promised
        and all(member.joining is not None for member in group.members.values())
    ):
        _complete(group, now, effects)


def on_join_deadline(group: GroupState, now: float, effects: list[Effect]) -> None:
    """End the wait for members, or extend an initial delay during which members have joined."""
    if group.initial_left_s and group.joined_meanwhile:
        # More members may be about to join: wait for the same delay again, but not beyond the
        # rebalance timeout.
        delay = min(group.config.initial_rebalance_delay_ms / 1000, group.initial_left_s)
        group.initial_left_s -= delay
        group.joined_meanwhile = False
        group.join_deadline = now + delay
        return
    _complete(group, now, effects)


def _complete(group: GroupState, now: float, effects: list[Effect]) -> None:
    """Begin a generation with those that joined; absent static members stay for a while."""
    group.initial_left_s = None
    for member in list(group.members.values()):
        is_static = member.instance_id is not None
        if rules.is_absent(has_joined=member.joining is not None, is_static=is_static):
            remove(group, member, effects)
    if group.members and not _elect(group):
        group.join_deadline = rules.rebalance_deadline(now, group.rebalance_timeouts_ms)
        return
    group.join_deadline = rules.NEVER
    group.generation = rules.next_generation(group.generation)
    if group.members:
        _begin_generation(group, now, effects)
    else:
        _become_empty(group, effects)


def _become_empty(group: GroupState, effects: list[Effect]) -> None:
    group.protocol = None
    group.subscribed = frozenset()
    group.become(GroupStatus.EMPTY)
    storing.store_empty(group, effects)


def _begin_generation(group: GroupState, now: float, effects: list[Effect]) -> None:
    """Answer the joins: the leader assigns next, and the members ask for their shares."""
    group.protocol = choose_protocol(group)
    group.subscribed = group.subscriptions()
    group.become(GroupStatus.COMPLETING)
    group.sync_deadline = rules.sync_deadline(now, max(group.rebalance_timeouts_ms) / 1000)
    for member in group.members.values():
        group.unsynced[member.id] = None
        if member.joining is not None:
            effects.append(Answered(member.joining, answers.joined(group, member)))
            member.joining = None
            begin_session(member, now)


def begin_session(member: Member, now: float) -> None:
    """Begin a member's session: it could send no heartbeat while its JoinGroup waited."""
    member.restart_session(now)


def _elect(group: GroupState) -> bool:
    """Make sure that the leader has joined; False if no member has."""
    leader = None if group.leader is None else group.members.get(group.leader)
    if leader is None or leader.joining is None:
        came = [member.id for member in group.members.values() if member.joining is not None]
        if not came:
            return False
        group.leader = came[0]
    return True


def common_protocols(group: GroupState) -> list[str]:
    """The protocols that all members of the group support; it has members."""
    first, *others = group.members.values()
    return [name for name in first.protocols if all(name in each.protocols for each in others)]


def choose_protocol(group: GroupState) -> str | None:
    """The protocol that most members prefer, of those that all members support."""
    common = common_protocols(group)
    votes = dict.fromkeys(common, 0)
    for member in group.members.values():
        votes[next(name for name in member.protocols if name in votes)] += 1
    return max(common, key=lambda name: votes[name])


def remove(group: GroupState, member: Member, effects: list[Effect]) -> None:
    """Remove a member, and answer its parked requests."""
    del group.members[member.id]
    group.unsynced.pop(member.id, None)
    if member.instance_id is not None:
        del group.static[member.instance_id]
    if member.joining is not None:
        answers.answer_join(member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
    if member.syncing is not None:
        answers.answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
    if group.leader == member.id:
        group.leader = next(iter(group.members), None)


def lose(group: GroupState, member: Member, now: float, effects: list[Effect]) -> None:
    """Remove a member that left or was silent for too long, and rebalance."""
    remove(group, member, effects)
    start(group, now, effects)
    complete_if_all_joined(group, now, effects)


def reset_assignments(
    group: GroupState, error: ErrorCode, now: float, effects: list[Effect]
) -> None:
    """Drop all assignments, and answer the parked syncs with an error."""
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            answers.answer_sync(member, error, effects)
            member.restart_session(now)
