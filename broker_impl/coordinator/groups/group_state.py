"""The state of one consumer group, its invariants, and queries of it; no transitions.

The modules of this package change it, each for one kind of event; `group` passes events to them.
"""

from collections.abc import Callable

from broker_impl.coordinator.groups import rules, states, subscription
from broker_impl.coordinator.groups.events import Effect, Written
from broker_impl.coordinator.groups.members import GroupConfig, GroupSnapshot, Member, MemberView
from broker_impl.coordinator.groups.offsets import Offsets
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode

Done = Callable[[Written, float, list[Effect]], None]
"""Called when a write has ended, with its outcome, the time, and the list of effects to extend."""


class GroupState:
    """The state of one group; ``check`` holds between any two events."""

    def __init__(
        self, name: str, config: GroupConfig, numbers: Callable[[], int], now_ms: int
    ) -> None:
        """Create an empty group; ``numbers`` returns a unique number for each write."""
        self.name = name
        self.state = GroupStatus.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.offsets = Offsets()
        self.config = config
        self.numbers = numbers
        self.now_ms = now_ms
        self.static: dict[str, str] = {}
        self.promised: dict[str, float] = {}
        """Member ids that were given out and have not joined yet, and until when they may
        (KIP-394)."""
        self.writes: dict[int, Done] = {}
        self.subscribed: frozenset[str] | None = None
        """The topics that a group of consumers is subscribed to; None if they are not known, as
        before its first generation."""
        # Used in PreparingRebalance.
        self.join_deadline = rules.NEVER
        self.initial_left_s: float | None = None
        """By how much an initial delay may still be extended; None: there is no initial delay."""
        self.joined_meanwhile = False
        # Used from CompletingRebalance on.
        self.unsynced: dict[str, None] = {}
        self.sync_deadline = rules.NEVER

    def become(self, state: GroupStatus) -> None:
        """Change the state; only permitted transitions exist."""
        assert states.may_follow(state, self.state), (
            f"{self.name}: the group cannot change from {self.state.value} to {state.value}"
        )
        self.state = state
        self.state_since_ms = self.now_ms

    def die(self) -> None:
        """End the group: no deadline is watched any more."""
        self.become(GroupStatus.DEAD)
        self.join_deadline = self.sync_deadline = rules.NEVER
        self.promised.clear()
        for member in self.members.values():
            member.deadline = rules.NEVER

    def check(self) -> None:
        """Check the invariants that hold between any two events."""
        state, members = self.state, self.members
        if state in (GroupStatus.COMPLETING, GroupStatus.STABLE):
            assert members, f"{self.name}: the group is {state.value} without members"
            assert self.protocol is not None, (
                f"{self.name}: the group is {state.value} without a protocol"
            )
            assert self.leader in members, f"{self.name}: the leader is not a member"
        if state is GroupStatus.EMPTY:
            assert not members, f"{self.name}: the group is Empty, but has members"
        joining = sum(member.joining is not None for member in members.values())
        syncing = sum(member.syncing is not None for member in members.values())
        assert not joining or state is GroupStatus.PREPARING, (
            f"{self.name}: JoinGroup requests wait while the group is {state}"
        )
        assert not syncing or state is GroupStatus.COMPLETING, (
            f"{self.name}: SyncGroup requests wait while the group is {state}"
        )
        statics = {m.instance_id: m.id for m in members.values() if m.instance_id is not None}
        assert statics == self.static, (
            f"{self.name}: the map of static members does not match the members"
        )
        assert (self.join_deadline < rules.NEVER) == (state is GroupStatus.PREPARING), (
            f"{self.name}: a rebalance has a deadline, and only a rebalance has one"
        )

    @property
    def deadline(self) -> float:
        """When the next Tick is due, in seconds; infinite if no deadline is set."""
        return min(
            (
                self.join_deadline,
                self.sync_deadline,
                *self.promised.values(),
                *(member.watched_until for member in self.members.values()),
            )
        )

    @property
    def rebalance_timeouts_ms(self) -> list[int]:
        """The rebalance timeout of each member."""
        return [member.rebalance_timeout_ms for member in self.members.values()]

    def member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Why this member may not make requests; NONE if it may."""
        holder = None if instance_id is None else self.static.get(instance_id)
        return rules.member_error(member_id in self.members, instance_id, holder, member_id)

    def subscriptions(self) -> frozenset[str] | None:
        """The topics that all members together are subscribed to; None if they are not known."""
        if self.protocol_type != subscription.CONSUMER or self.protocol is None:
            return None
        topics: frozenset[str] = frozenset()
        for member in self.members.values():
            mine = subscription.topics(member.protocols[self.protocol])
            if mine is None:
                return None
            topics |= mine
        return topics

    def is_subscribed(self, topic: str) -> bool:
        """May a member of the group be reading this topic? In doubt, yes."""
        if self.state is GroupStatus.EMPTY:
            return False
        return rules.is_subscribed(self.subscribed, topic)

    @property
    def is_unused(self) -> bool:
        """Has the group no members, none about to join, and no commits or removals in progress?"""
        return (
            self.state is GroupStatus.EMPTY
            and not self.promised
            and self.offsets.is_settled
            and not self.offsets.owes_tombstones
        )

    def snapshot(self) -> GroupSnapshot:
        """The group as DescribeGroups reports it."""
        is_stable = self.state is GroupStatus.STABLE
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
