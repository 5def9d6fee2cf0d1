"""One consumer group: its members, generation and assignment, by the classic protocol.

Events in, effects out. A rebalance makes every member join again, waits for the slowest of them,
and begins a new generation with those that joined; the leader among them then assigns partitions,
and each member asks for its share. State that must survive this broker is written before any client
learns of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

import msgspec

from broker_impl.coordinator import records
from broker_impl.coordinator.groups import rules, states, subscription
from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Delete,
    DeleteOffsets,
    DeleteOffsetsAnswer,
    Effect,
    Event,
    Expire,
    Heartbeat,
    Join,
    JoinAnswer,
    Leave,
    LeaveAnswer,
    Marked,
    Sync,
    SyncAnswer,
    Tick,
    TopicsGone,
    Unload,
    Write,
    Written,
)
from broker_impl.coordinator.groups.members import GroupConfig, GroupSnapshot, Member, MemberView
from broker_impl.coordinator.groups.offsets import Offsets
from broker_impl.coordinator.groups.states import State
from broker_impl.coordinator.records import GroupRecord, MemberRecord
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Offset, TopicPartition

_NEW_MEMBER_TIMEOUT_S = 300.0
"""How long a new member's first join counts as a member, although its client may be gone."""


Done = Callable[[Written, float, list[Effect]], None]
"""Called when a write has ended, with its outcome, the time, and the list of effects to extend."""


class Group:
    """The state machine of one group; see the module."""

    def __init__(
        self, name: str, config: GroupConfig, numbers: Callable[[], int], now_ms: int
    ) -> None:
        """Create an empty group; ``numbers`` returns a unique number for each write."""
        self.name = name
        self.state = State.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.offsets = Offsets()
        self._config = config
        self._numbers = numbers
        self._now_ms = now_ms
        self._static: dict[str, str] = {}
        self._promised: dict[str, float] = {}
        """Member ids that were given out and have not joined yet, and until when they may
        (KIP-394)."""
        self._writes: dict[int, Done] = {}
        self._subscribed: frozenset[str] | None = frozenset()
        """The topics that a group of consumers is subscribed to; None if they are not known."""
        # Used in PreparingRebalance.
        self._join_deadline = rules.NEVER
        self._initial_left_s: float | None = None
        """By how much an initial delay may still be extended; None: there is no initial delay."""
        self._joined_meanwhile = False
        # Used from CompletingRebalance on.
        self._unsynced: dict[str, None] = {}
        self._sync_deadline = rules.NEVER

    # Events.

    def handle(self, event: Event, now: float, now_ms: int) -> list[Effect]:
        """Handle one event; ``now`` in seconds of the loop, ``now_ms`` of the wall clock."""
        self._now_ms = now_ms
        effects: list[Effect] = []
        match event:
            case Join():
                self._join(event, now, effects)
            case Sync():
                self._sync(event, now, effects)
            case Heartbeat():
                effects.append(Answered(event.ticket, self._heartbeat(event, now)))
            case Leave():
                self._leave(event, now, effects)
            case Commit():
                self._commit(event, now, effects)
            case DeleteOffsets():
                self._delete_offsets(event, effects)
            case Delete():
                self._delete(event, effects)
            case Written(number=number):
                self._writes.pop(number)(event, now, effects)
            case Marked():
                self.offsets.resolve(event.producer_id, event.at, is_commit=event.is_commit)
            case Tick():
                self._tick(now, effects)
            case Expire():
                self._expire(effects)
            case TopicsGone(partitions):
                self._forget(tuple(tp for tp in self.offsets if tp in partitions), effects)
            case Unload():
                self._unload(effects)
            case _:
                assert_never(event)
        self.check()
        return effects

    @property
    def deadline(self) -> float:
        """When the next Tick is due, in seconds; infinite if no deadline is set."""
        return min(
            (
                self._join_deadline,
                self._sync_deadline,
                *self._promised.values(),
                *(member.watched_until for member in self.members.values()),
            )
        )

    def check(self) -> None:
        """Check the invariants that hold between any two events."""
        state, members = self.state, self.members
        if state in (State.COMPLETING, State.STABLE):
            assert members, f"{self.name}: the group is {state.value} without members"
            assert self.protocol is not None, (
                f"{self.name}: the group is {state.value} without a protocol"
            )
            assert self.leader in members, f"{self.name}: the leader is not a member"
        if state is State.EMPTY:
            assert not members, f"{self.name}: the group is Empty, but has members"
        joining = sum(member.joining is not None for member in members.values())
        syncing = sum(member.syncing is not None for member in members.values())
        assert not joining or state is State.PREPARING, (
            f"{self.name}: JoinGroup requests wait while the group is {state}"
        )
        assert not syncing or state is State.COMPLETING, (
            f"{self.name}: SyncGroup requests wait while the group is {state}"
        )
        statics = {m.instance_id: m.id for m in members.values() if m.instance_id is not None}
        assert statics == self._static, (
            f"{self.name}: the map of static members does not match the members"
        )
        assert (self._join_deadline < rules.NEVER) == (state is State.PREPARING), (
            f"{self.name}: a rebalance has a deadline, and only a rebalance has one"
        )

    def _become(self, state: State) -> None:
        assert states.may_follow(state, self.state), (
            f"{self.name}: the group cannot change from {self.state.value} to {state.value}"
        )
        self.state = state
        self.state_since_ms = self._now_ms

    # Queries.

    def snapshot(self) -> GroupSnapshot:
        """The group as DescribeGroups reports it."""
        is_stable = self.state is State.STABLE
        protocol = (self.protocol or "") if is_stable else ""
        return GroupSnapshot(
            group=self.name,
            state=self.state.value,
            generation=self.generation,
            protocol_type=self.protocol_type or "",
            protocol=protocol,
            leader=self.leader or "",
            members=tuple(
                MemberView(
                    member_id=member.id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscription=member.protocols.get(protocol, b"") if is_stable else b"",
                    assignment=member.assignment if is_stable else b"",
                )
                for member in self.members.values()
            ),
        )

    # Joining.

    def _join(self, join: Join, now: float, effects: list[Effect]) -> None:
        refusal = self._join_error(join)
        if refusal is not ErrorCode.NONE:
            effects.append(Answered(join.ticket, join.refused(refusal)))
        elif join.member_id != rules.NO_MEMBER:
            self._known_joins(join, now, effects)
        elif join.instance_id is not None and join.instance_id in self._static:
            self._static_rejoins(join, now, effects)
        elif join.instance_id is None and join.requires_id:
            self._promised[join.fresh_id] = now + join.session_timeout_ms / 1000
            answer = JoinAnswer(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=join.fresh_id)
            effects.append(Answered(join.ticket, answer))
        else:
            self._add(join.fresh_id, join, now, effects)
        self._complete_join_if_all_have(now, effects)

    def _join_error(self, join: Join) -> ErrorCode:
        config = self._config
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        low, high = config.session_timeout_min_ms, config.session_timeout_max_ms
        if not low <= join.session_timeout_ms <= high:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self._supports(join):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        is_static = join.instance_id is not None and join.instance_id in self._static
        is_counted = is_static or join.member_id in self.members
        if not is_counted and len(self.members) >= config.size_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _supports(self, join: Join) -> bool:
        """Does the joining member share a protocol with all other members?"""
        itself = (join.member_id, self._static.get(join.instance_id or ""))
        others = [member for member in self.members.values() if member.id not in itself]
        if not join.protocol_type or not join.protocols:
            return False
        if not others:
            return not self.members or join.protocol_type == self.protocol_type
        return join.protocol_type == self.protocol_type and any(
            all(name in member.protocols for member in others) for name, _ in join.protocols
        )

    def _known_joins(self, join: Join, now: float, effects: list[Effect]) -> None:
        if join.instance_id is None and join.member_id in self._promised:
            del self._promised[join.member_id]
            self._add(join.member_id, join, now, effects)
            return
        error = self._member_error(join.member_id, join.instance_id)
        if error is not ErrorCode.NONE:
            effects.append(Answered(join.ticket, join.refused(error)))
            return
        member = self.members[join.member_id]
        is_unchanged = member.protocols == dict(join.protocols)
        if self.state is State.COMPLETING and is_unchanged:
            # It did not get the answer to its join: answer again.
            effects.append(Answered(join.ticket, self._joined(member)))
            self._hear(member, now)
        elif self.state is State.STABLE and is_unchanged and member.id != self.leader:
            effects.append(Answered(join.ticket, self._joined(member)))
            self._hear(member, now)
        else:
            self._park(member, join, effects)
            self._rebalance(now, effects)

    def _add(self, member_id: str, join: Join, now: float, effects: list[Effect]) -> None:
        if not self.members:
            self.protocol_type = join.protocol_type
        if self._initial_left_s is not None and self.generation == 0:
            self._joined_meanwhile = True
        member = self.members[member_id] = Member(member_id, join)
        member.joining = join.ticket
        member.deadline = now + _NEW_MEMBER_TIMEOUT_S
        if member.instance_id is not None:
            self._static[member.instance_id] = member_id
        if self.leader is None:
            self.leader = member_id
        self._rebalance(now, effects)

    def _park(self, member: Member, join: Join, effects: list[Effect]) -> None:
        """Let a member's join wait for the others, and answer one that waited before."""
        if member.joining is not None:
            self._answer_join(member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
        member.update(join)
        member.joining = join.ticket

    def _static_rejoins(self, join: Join, now: float, effects: list[Effect]) -> None:
        """Let a restarted static member replace its former member id, which is fenced (KIP-345)."""
        assert join.instance_id is not None, "static members have an instance id"
        former_id = self._static[join.instance_id]
        leader = self.leader
        member = self._replace(former_id, join.fresh_id, effects)
        former = Join(
            ticket=join.ticket,
            member_id=former_id,
            fresh_id=former_id,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocols=tuple(member.protocols.items()),
        )
        member.update(join)
        member.client_id, member.client_host = join.client_id, join.client_host
        self._hear(member, now)
        keeps_protocol = self._choose_protocol() == self.protocol
        if self.state is State.PREPARING or rules.static_join_rebalances(
            self.state, keeps_protocol
        ):
            member.joining = join.ticket
            self._rebalance(now, effects)
            return

        def done(written: Written, later: float, told: list[Effect]) -> None:
            if self._static.get(join.instance_id or "") != join.fresh_id:
                answer = join.refused(ErrorCode.FENCED_INSTANCE_ID)
            elif rules.counts_as_stored(written.error):
                answer = self._joined(self.members[join.fresh_id])
                if answer.leader == join.fresh_id and not join.may_skip_assignment:
                    # It must not assign again, so it is answered as a follower; KIP-814 replaces
                    # this by `skip_assignment`.
                    answer = msgspec.structs.replace(answer, leader=leader or "", members=())
                elif answer.leader == join.fresh_id:
                    answer = msgspec.structs.replace(answer, skip_assignment=True)
            else:
                self._replace(join.fresh_id, former_id, told).update(former)
                self._hear(self.members[former_id], later)
                answer = join.refused(rules.assignment_error(written.error))
            told.append(Answered(join.ticket, answer))

        self._store_members(done, effects)

    def _store_members(self, done: Done, effects: list[Effect]) -> None:
        """Write the group, so that a static member's new id survives this broker (KAFKA-10284)."""
        assignments = {each.id: each.assignment for each in self.members.values()}
        self._write([self._record(assignments)], done, effects)

    def _replace(self, former_id: str, member_id: str, effects: list[Effect]) -> Member:
        """Give a static member another id; requests parked under the former id are fenced."""
        member = self.members[former_id]
        if member.joining is not None:
            self._answer_join(member, ErrorCode.FENCED_INSTANCE_ID, effects)
        if member.syncing is not None:
            self._answer_sync(member, ErrorCode.FENCED_INSTANCE_ID, effects)
        self.members = {
            member_id if name == former_id else name: each for name, each in self.members.items()
        }
        member.id = member_id
        assert member.instance_id is not None, "only static members are replaced"
        self._static[member.instance_id] = member_id
        if self.leader == former_id:
            self.leader = member_id
        if former_id in self._unsynced:
            del self._unsynced[former_id]
            self._unsynced[member_id] = None
        return member

    def _joined(self, member: Member) -> JoinAnswer:
        """A member's view of the current generation; only the leader gets the list of members."""
        assert self.protocol is not None, "every generation has a protocol"
        members: Iterable[Member] = self.members.values() if member.id == self.leader else ()
        return JoinAnswer(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=tuple(
                (each.id, each.instance_id, each.protocols[self.protocol]) for each in members
            ),
        )

    def _answer_join(self, member: Member, error: ErrorCode, effects: list[Effect]) -> None:
        assert member.joining is not None, "a waiting JoinGroup request is answered"
        member_id = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else member.id
        answer = JoinAnswer(error=error, member_id=member_id)
        effects.append(Answered(member.joining, answer))
        member.joining = None

    def _answer_sync(self, member: Member, error: ErrorCode, effects: list[Effect]) -> None:
        assert member.syncing is not None, "a waiting SyncGroup request is answered"
        effects.append(Answered(member.syncing, SyncAnswer(error=error)))
        member.syncing = None

    def _hear(self, member: Member, now: float) -> None:
        """Restart a member's session timeout."""
        member.is_new = False
        member.deadline = now + member.session_timeout_ms / 1000

    def _member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        holder = None if instance_id is None else self._static.get(instance_id)
        return rules.member_error(member_id in self.members, instance_id, holder, member_id)

    # A rebalance.

    def _rebalance(self, now: float, effects: list[Effect]) -> None:
        """Start a rebalance: wait for all members to join again, unless one is in preparation."""
        if not states.may_follow(State.PREPARING, self.state):
            return
        if self.state is State.COMPLETING:
            self._reset_assignments(ErrorCode.REBALANCE_IN_PROGRESS, now, effects)
        self._unsynced.clear()
        self._sync_deadline = rules.NEVER
        timeouts = [member.rebalance_timeout_ms for member in self.members.values()]
        self._join_deadline = rules.rebalance_deadline(now, timeouts)
        if self.state is State.EMPTY:
            delay = self._config.initial_rebalance_delay_ms / 1000
            self._initial_left_s = max(self._join_deadline - now - delay, 0)
            self._joined_meanwhile = False
            self._join_deadline = now + delay
        self._become(State.PREPARING)

    def _complete_join_if_all_have(self, now: float, effects: list[Effect]) -> None:
        if (
            self.state is State.PREPARING
            and self._initial_left_s is None
            and not self._promised
            and all(member.joining is not None for member in self.members.values())
        ):
            self._complete_join(now, effects)

    def _join_timed_out(self, now: float, effects: list[Effect]) -> None:
        if self._initial_left_s and self._joined_meanwhile:
            # More members may be about to join: wait for the same delay again, but not beyond the
            # rebalance timeout.
            delay = min(self._config.initial_rebalance_delay_ms / 1000, self._initial_left_s)
            self._initial_left_s -= delay
            self._joined_meanwhile = False
            self._join_deadline = now + delay
            return
        self._complete_join(now, effects)

    def _complete_join(self, now: float, effects: list[Effect]) -> None:
        """Begin a generation with those that joined; absent static members stay for a while."""
        self._initial_left_s = None
        for member in list(self.members.values()):
            if member.joining is None and member.instance_id is None:
                self._remove(member, effects)
        if self.members and not self._elect():
            timeouts = [member.rebalance_timeout_ms for member in self.members.values()]
            self._join_deadline = rules.rebalance_deadline(now, timeouts)
            return
        self._join_deadline = rules.NEVER
        self.generation = rules.next_generation(self.generation)
        if not self.members:
            self.protocol = None
            self._subscribed = frozenset()
            self._become(State.EMPTY)
            self._write([self._record({})], _nobody_waits, effects)
            return
        self.protocol = self._choose_protocol()
        self._subscribed = self._subscriptions()
        self._become(State.COMPLETING)
        timeouts = [member.rebalance_timeout_ms for member in self.members.values()]
        self._sync_deadline = rules.sync_deadline(now, max(timeouts) / 1000)
        for member in self.members.values():
            self._unsynced[member.id] = None
            if member.joining is not None:
                effects.append(Answered(member.joining, self._joined(member)))
                member.joining = None
                self._hear(member, now)

    def _elect(self) -> bool:
        """Make sure that the leader has joined; False if no member has."""
        leader = None if self.leader is None else self.members.get(self.leader)
        if leader is None or leader.joining is None:
            came = [member.id for member in self.members.values() if member.joining is not None]
            if not came:
                return False
            self.leader = came[0]
        return True

    def _choose_protocol(self) -> str | None:
        """The protocol that most members prefer, of those that all members support."""
        members = list(self.members.values())
        common = [
            name
            for name in members[0].protocols
            if all(name in member.protocols for member in members)
        ]
        votes = dict.fromkeys(common, 0)
        for member in members:
            votes[next(name for name in member.protocols if name in votes)] += 1
        return max(common, key=lambda name: votes[name])

    def _subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != subscription.CONSUMER or self.protocol is None:
            return None
        topics: frozenset[str] = frozenset()
        for member in self.members.values():
            mine = subscription.topics(member.protocols[self.protocol])
            if mine is None:
                return None
            topics |= mine
        return topics

    def _remove(self, member: Member, effects: list[Effect]) -> None:
        del self.members[member.id]
        self._unsynced.pop(member.id, None)
        if member.instance_id is not None:
            del self._static[member.instance_id]
        if member.joining is not None:
            self._answer_join(member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
        if member.syncing is not None:
            self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID, effects)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def _lose(self, member: Member, now: float, effects: list[Effect]) -> None:
        """Remove a member that left or was silent for too long, and rebalance."""
        self._remove(member, effects)
        self._rebalance(now, effects)
        self._complete_join_if_all_have(now, effects)

    # Assigning.

    def _sync(self, sync: Sync, now: float, effects: list[Effect]) -> None:
        error = self._sync_error(sync)
        if error is not ErrorCode.NONE:
            effects.append(Answered(sync.ticket, sync.refused(error)))
            return
        member = self.members[sync.member_id]
        self._hear(member, now)
        self._unsynced.pop(member.id, None)
        if self.state is State.STABLE:
            effects.append(Answered(sync.ticket, self._assigned(member)))
        else:
            if member.syncing is not None:
                self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS, effects)
            member.syncing = sync.ticket
            if member.id == self.leader:
                self._store_assignments(sync.assignments, effects)
        if not self._unsynced:
            self._sync_deadline = rules.NEVER

    def _sync_error(self, sync: Sync) -> ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._member_error(sync.member_id, sync.instance_id)
        if error is ErrorCode.NONE:
            error = rules.generation_error(sync.generation, self.generation)
        if error is not ErrorCode.NONE:
            return error
        if sync.protocol_type is not None and sync.protocol_type != self.protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.state is State.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if sync.protocol is not None and sync.protocol != self.protocol:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _assigned(self, member: Member) -> SyncAnswer:
        return SyncAnswer(
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            assignment=member.assignment,
        )

    def _store_assignments(self, given: Mapping[str, bytes], effects: list[Effect]) -> None:
        """Write the assignment before any member gets it (KAFKA-2017).

        A member that the leader left out gets an empty assignment.
        """
        generation = self.generation
        assignments = {member_id: given.get(member_id, b"") for member_id in self.members}

        def done(written: Written, now: float, told: list[Effect]) -> None:
            if self.state is not State.COMPLETING or self.generation != generation:
                return
            if not rules.counts_as_stored(written.error):
                self._reset_assignments(rules.assignment_error(written.error), now, told)
                self._rebalance(now, told)
                return
            for member in self.members.values():
                member.assignment = assignments.get(member.id, b"")
            self._become(State.STABLE)
            for member in self.members.values():
                if member.syncing is not None:
                    told.append(Answered(member.syncing, self._assigned(member)))
                    member.syncing = None
                    self._hear(member, now)

        self._write([self._record(assignments)], done, effects)

    def _reset_assignments(self, error: ErrorCode, now: float, effects: list[Effect]) -> None:
        for member in self.members.values():
            member.assignment = b""
            if member.syncing is not None:
                self._answer_sync(member, error, effects)
                self._hear(member, now)

    # Heartbeats, leaving, timeouts.

    def _heartbeat(self, beat: Heartbeat, now: float) -> ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._member_error(beat.member_id, beat.instance_id)
        if error is ErrorCode.NONE:
            error = rules.generation_error(beat.generation, self.generation)
        if error is not ErrorCode.NONE:
            return error
        self._hear(self.members[beat.member_id], now)
        if self.state is State.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _leave(self, leave: Leave, now: float, effects: list[Effect]) -> None:
        if self.state is State.DEAD:
            answer = leave.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            effects.append(Answered(leave.ticket, answer))
            return
        rows = tuple(
            (member_id, instance_id, self._leaves(member_id, instance_id, now, effects))
            for member_id, instance_id in leave.members
        )
        effects.append(Answered(leave.ticket, LeaveAnswer(rows=rows)))

    def _leaves(
        self, member_id: str, instance_id: str | None, now: float, effects: list[Effect]
    ) -> ErrorCode:
        if member_id == rules.NO_MEMBER and instance_id is not None:
            member_id = self._static.get(instance_id, rules.NO_MEMBER)
        elif instance_id is None and member_id in self._promised:
            del self._promised[member_id]
            self._complete_join_if_all_have(now, effects)
            return ErrorCode.NONE
        error = self._member_error(member_id, instance_id)
        if error is ErrorCode.NONE:
            self._lose(self.members[member_id], now, effects)
        return error

    def _tick(self, now: float, effects: list[Effect]) -> None:
        self._promised = {
            member_id: until
            for member_id, until in self._promised.items()
            if not rules.has_expired(until, now)
        }
        for member in list(self.members.values()):
            if member.id in self.members and rules.has_expired(member.watched_until, now):
                self._lose(member, now, effects)
        if now >= self._sync_deadline:
            self._sync_deadline = rules.NEVER
            for member_id in tuple(self._unsynced):
                self._remove(self.members[member_id], effects)
            self._rebalance(now, effects)
        self._complete_join_if_all_have(now, effects)
        if now >= self._join_deadline:
            self._join_timed_out(now, effects)

    def _unload(self, effects: list[Effect]) -> None:
        for member in self.members.values():
            if member.joining is not None:
                self._answer_join(member, ErrorCode.NOT_COORDINATOR, effects)
            if member.syncing is not None:
                self._answer_sync(member, ErrorCode.NOT_COORDINATOR, effects)
        self._die()

    def _die(self) -> None:
        self._become(State.DEAD)
        self._join_deadline = self._sync_deadline = rules.NEVER
        self._promised.clear()
        for member in self.members.values():
            member.deadline = rules.NEVER

    # Offsets.

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Why a commit is rejected: because of its member, its generation or the group's state."""
        if self.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if commit.producer_id >= 0:
            return rules.transaction_error(
                commit.member_id in self.members,
                None if commit.instance_id is None else self._static.get(commit.instance_id),
                commit.member_id,
                commit.generation,
                self.generation,
            )
        if rules.names_nobody(commit.member_id, commit.instance_id, commit.generation):
            return rules.outsider_error(self.state) or rules.commit_state_error(self.state)
        if commit.generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        of_member = self._member_error(commit.member_id, commit.instance_id)
        error = rules.committer_error(of_member, commit.generation, self.generation)
        return error or rules.commit_state_error(self.state)

    def _commit(self, commit: Commit, now: float, effects: list[Effect]) -> None:
        error = self.commit_error(commit)
        member = self.members.get(commit.member_id)
        if member is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._hear(member, now)
        if error is not ErrorCode.NONE or not commit.offsets:
            effects.append(Answered(commit.ticket, error))
            return

        def done(written: Written, later: float, told: list[Effect]) -> None:
            if rules.counts_as_stored(written.error):
                self._keep(commit, written.offset)
            self.offsets.end(commit.offsets)
            told.append(Answered(commit.ticket, rules.commit_error(written.error)))

        self.offsets.begin(commit.offsets)
        rows = [
            (records.encode_offset_key(self.name, tp), records.encode_offset(committed))
            for tp, committed in commit.offsets.items()
        ]
        self._write(rows, done, effects, commit)

    def _keep(self, commit: Commit, at: Offset) -> None:
        if rules.counts_at_once(commit.producer_id):
            self.offsets.place(at, commit.offsets)
        else:
            self.offsets.hold(commit.producer_id, at, commit.offsets)

    def _delete_offsets(self, asked: DeleteOffsets, effects: list[Effect]) -> None:
        answer = asked.refused(self._delete_offsets_error())
        if answer.error is not ErrorCode.NONE:
            effects.append(Answered(asked.ticket, answer))
            return
        gone = tuple(tp for tp in asked.partitions if not self._is_subscribed(tp.topic))
        rows = {
            tp: ErrorCode.NONE if tp in gone else ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            for tp in asked.partitions
        }

        def answer_with(error: ErrorCode) -> list[Effect]:
            told = rows if error is ErrorCode.NONE else rows | dict.fromkeys(gone, error)
            return [Answered(asked.ticket, DeleteOffsetsAnswer(rows=told))]

        def done(error: ErrorCode) -> list[Effect]:
            told = answer_with(error)
            if error is ErrorCode.NONE and gone and self._is_unused and not self.offsets:
                self._bury(told)
            return told

        known = tuple(tp for tp in gone if self.offsets.get(tp) is not None)
        if known:
            self._forget(known, effects, done)
        else:
            effects += done(ErrorCode.NONE)

    def _delete_offsets_error(self) -> ErrorCode:
        if self.state is State.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.state is State.EMPTY or self.protocol_type == subscription.CONSUMER:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def _forget(
        self,
        partitions: tuple[TopicPartition, ...],
        effects: list[Effect],
        answer_with: Callable[[ErrorCode], list[Effect]] = lambda error: [],
    ) -> None:
        """Write tombstones for these offsets and then remove them; `answer_with` gets the error."""
        if not partitions:
            return

        def done(written: Written, now: float, told: list[Effect]) -> None:
            if rules.counts_as_stored(written.error):
                self.offsets.forget(written.offset, partitions)
            self.offsets.end_deletion()
            told += answer_with(rules.commit_error(written.error))

        self.offsets.begin_deletion()
        self._write(self._tombstones(partitions), done, effects)

    def _tombstones(self, partitions: Iterable[TopicPartition]) -> list[tuple[bytes, bytes | None]]:
        return [(records.encode_offset_key(self.name, tp), None) for tp in partitions]

    def _is_subscribed(self, topic: str) -> bool:
        """May a member of the group be reading this topic? In doubt, yes."""
        if self.state is State.EMPTY:
            return False
        return rules.is_subscribed(self._subscribed, topic)

    @property
    def _is_unused(self) -> bool:
        """Has the group no members, none about to join, and no commits in progress?"""
        return self.state is State.EMPTY and not self._promised and self.offsets.is_settled

    def _expire(self, effects: list[Effect]) -> None:
        """Remove offsets whose retention has passed, unless members still read them (KIP-211)."""
        unused_since, keep = -1, frozenset[str]()
        if self.state is State.EMPTY:
            if self.protocol_type is not None:
                unused_since = self.state_since_ms
        elif self.state is State.STABLE and self._subscribed is not None:
            keep = self._subscribed
        else:
            return
        gone = self.offsets.expired(
            self._now_ms, self._config.offsets_retention_ms, unused_since, keep
        )
        if self._is_unused and len(gone) == len(self.offsets):
            self._bury(effects)
        else:
            self._forget(gone, effects)

    def _delete(self, asked: Delete, effects: list[Effect]) -> None:
        if rules.may_be_deleted(self.state, self.offsets.is_settled):
            self._bury(effects, asked)
            return
        is_dead = self.state is State.DEAD
        error = ErrorCode.GROUP_ID_NOT_FOUND if is_dead else ErrorCode.NON_EMPTY_GROUP
        effects.append(Answered(asked.ticket, error))

    def _bury(self, effects: list[Effect], asked: Delete | None = None) -> None:
        """Remove the group and all of its offsets, and write their tombstones."""

        def done(written: Written, now: float, told: list[Effect]) -> None:
            if asked is not None:
                told.append(Answered(asked.ticket, rules.commit_error(written.error)))

        self._die()
        rows = self._tombstones(self.offsets)
        self._write([*rows, (records.encode_group_key(self.name), None)], done, effects)

    # Writing to the log, and restoring from it.

    def _write(
        self,
        rows: Sequence[tuple[bytes, bytes | None]],
        done: Done,
        effects: list[Effect],
        commit: Commit | None = None,
    ) -> None:
        number = self._numbers()
        self._writes[number] = done
        effects.append(
            Write(
                group=self.name,
                number=number,
                records=tuple(rows),
                producer_id=-1 if commit is None else commit.producer_id,
                producer_epoch=-1 if commit is None else commit.producer_epoch,
                guard=None if commit is None else commit.guard,
            )
        )

    def _record(self, assignments: Mapping[str, bytes]) -> tuple[bytes, bytes | None]:
        record = GroupRecord(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_since_ms=self.state_since_ms,
            members=tuple(
                MemberRecord(
                    member_id=member.id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.protocols[self.protocol or ""],
                    assignment=assignments[member.id],
                )
                for member in self.members.values()
            ),
        )
        return records.encode_group_key(self.name), records.encode_group(record)

    def restore(self, record: GroupRecord, now: float) -> None:
        """Restore the group from its record; each member gets a full session timeout."""
        assert self.state is State.EMPTY, "a group is restored before any other event"
        assert not self.members, "a group is restored before a member joins"
        self.generation = record.generation
        self.protocol_type = record.protocol_type or None
        self.protocol = record.protocol
        self.leader = record.leader
        if record.state_since_ms >= 0:
            self.state_since_ms = record.state_since_ms
        for row in record.members:
            member = self.members[row.member_id] = Member(
                row.member_id,
                Join(
                    ticket=0,
                    member_id=row.member_id,
                    fresh_id="",
                    instance_id=row.instance_id,
                    client_id=row.client_id,
                    client_host=row.client_host,
                    session_timeout_ms=row.session_timeout_ms,
                    rebalance_timeout_ms=row.rebalance_timeout_ms,
                    protocols=((record.protocol or "", row.subscription),),
                ),
            )
            member.assignment = row.assignment
            if row.instance_id is not None:
                self._static[row.instance_id] = row.member_id
            self._hear(member, now)
        if self.members:
            self.state = State.STABLE
            if self.leader not in self.members:
                self.leader = next(iter(self.members))
            self._subscribed = self._subscriptions()
        self.check()


def _nobody_waits(written: Written, now: float, effects: list[Effect]) -> None:
    """Do nothing: the record of an empty group is only for the next coordinator."""
