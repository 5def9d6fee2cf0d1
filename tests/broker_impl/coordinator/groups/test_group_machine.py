"""One group, under random requests of clients and outcomes of the log, in any order."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import JoinAnswer, Marked, SyncAnswer, Tick
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import OffsetKey
from broker_impl.errors import ErrorCode
from tests.broker_impl.coordinator.groups.conftest import RANGE, Room, subscription

OTHER = (("range", subscription("t", "u")), ("sticky", b""))
STICKY = OTHER[1:]
members = st.integers(0, 9)
"""Selects the sender of a request: a present member, an empty id, or an id that may be unknown."""
instances = st.sampled_from([None, None, None, "i", "j", ""])
generations = st.sampled_from([0, 0, 0, -1, 1])


class GroupMachine(RuleBasedStateMachine):
    """Send random requests; the group checks its own state, and the machine checks the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Room(writes=False)
        self.joins: dict[int, None] = {}
        self.syncs: dict[int, tuple[str, int]] = {}
        self.told: dict[tuple[int, str], bytes] = {}
        """The assignment that each member received, by generation and member id."""

    def pick(self, who: int) -> str:
        pool = [*self.room.group.members, "", "m1", "m2", "m3"]
        return pool[who % len(pool)]

    def instance_of(self, member: str, otherwise: str | None) -> str | None:
        known = self.room.group.members.get(member)
        return otherwise if known is None else known.instance_id

    def generation(self, by: int) -> int:
        return self.room.group.generation + by

    @rule(
        who=members,
        instance=instances,
        requires=st.booleans(),
        protocols=st.sampled_from([RANGE, RANGE, OTHER, STICKY]),
    )
    def join(self, who: int, instance: str | None, requires: bool, protocols: Any) -> None:
        self.joins_as(self.pick(who), instance, requires, protocols)

    def joins_as(self, member: str, instance: str | None, requires: bool, protocols: Any) -> None:
        ticket = self.room.join(
            member, instance_id=instance, requires_id=requires, protocols=protocols
        )
        self.joins[ticket] = None

    @rule(instance=instances)
    def newcomer(self, instance: str | None) -> None:
        self.joins_as("", instance, False, RANGE)

    @rule(who=members, instance=instances, by=generations)
    def sync(self, who: int, instance: str | None, by: int) -> None:
        member = self.pick(who)
        self.syncs_as(member, self.instance_of(member, instance), by)

    def syncs_as(self, member: str, instance: str | None, by: int) -> None:
        group = self.room.group
        given = {name: f"{name}@{group.generation}".encode() for name in group.members}
        ticket = self.room.sync(
            member, self.generation(by), instance_id=instance, assignments=given
        )
        self.syncs[ticket] = (member, self.generation(by))

    @rule(until=st.integers(0, 3))
    def rebalance(self, until: int) -> None:
        """Rebalance in the steps of real clients: join, sync, write; stop after step ``until``."""
        members = self.room.group.members
        for member in list(members):
            self.joins_as(member, self.instance_of(member, None), True, RANGE)
        if until >= 1:
            self.room.pass_time(0)
        if until >= 2:
            for member in list(members):
                self.syncs_as(member, self.instance_of(member, None), 0)
        if until >= 3:
            self.room.write()

    @rule(who=members, instance=instances, by=generations)
    def beat(self, who: int, instance: str | None, by: int) -> None:
        member = self.pick(who)
        instance = self.instance_of(member, instance)
        error = self.room.beat(member, self.generation(by), instance_id=instance)
        if error is ErrorCode.NONE:
            assert member in self.room.group.members
            assert by == 0

    @rule(who=members, instance=instances)
    def leave(self, who: int, instance: str | None) -> None:
        member = self.pick(who)
        if self.room.leave(member, instance) is ErrorCode.NONE:
            assert member not in self.room.group.members

    @rule(
        who=members,
        by=generations,
        offset=st.integers(0, 9),
        producer=st.sampled_from([-1, -1, 7, 8]),
    )
    def commit(self, who: int, by: int, offset: int, producer: int) -> None:
        member, generation = self.pick(who), self.generation(by)
        was_empty = self.room.is_in(GroupStatus.EMPTY)
        ticket = self.room.commit(
            offset, member_id=member, generation=generation, producer_id=producer
        )
        if ticket in self.room.answers:
            return
        is_member = member in self.room.group.members
        if producer >= 0:
            assert is_member or not member
            assert generation < 0 or by == 0
        elif not (generation < 0 and (was_empty or not member)):
            assert is_member
            assert by == 0

    @rule(offset=st.integers(0, 9), producer=st.sampled_from([7, 8]))
    def commit_in_a_transaction(self, offset: int, producer: int) -> None:
        self.room.commit(offset, producer_id=producer)

    @rule(producer=st.sampled_from([7, 8]), is_commit=st.booleans())
    @precondition(lambda self: not self.room.unwritten)
    def mark(self, producer: int, is_commit: bool) -> None:
        self.room.mark(producer, is_commit=is_commit)

    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def write(self, error: ErrorCode) -> None:
        self.room.write(error)

    @rule(seconds=st.sampled_from([0, 0, 3, 9, 30, 61]))
    def time(self, seconds: int) -> None:
        self.room.pass_time(seconds)

    @rule()
    def tick_early(self) -> None:
        """A tick before the deadline changes no visible state."""
        if self.room.group.deadline > self.room.now:
            before = self.room.group.snapshot()
            self.room.happen(Tick())
            assert self.room.group.snapshot() == before

    @invariant()
    def each_member_is_told_one_assignment_a_generation(self) -> None:
        for ticket, (member, generation) in list(self.syncs.items()):
            answer = self.room.answers.get(ticket)
            if isinstance(answer, SyncAnswer):
                del self.syncs[ticket]
                if not answer.error:
                    known = self.told.setdefault((generation, member), answer.assignment)
                    assert known == answer.assignment

    @invariant()
    def only_the_leader_is_told_who_is_there(self) -> None:
        for ticket in list(self.joins):
            answer = self.room.answers.get(ticket)
            if isinstance(answer, JoinAnswer):
                del self.joins[ticket]
                assert not answer.members or answer.leader == answer.member_id

    @invariant()
    def what_the_log_says_is_what_counts(self) -> None:
        """The last offset record in the log counts, unless its transaction aborted or is open."""
        if self.room.unwritten:
            return
        counts: tuple[int, int | None] | None = None
        pending: dict[int, tuple[int, int | None]] = {}
        for at, entry in self.room.history:
            if isinstance(entry, Marked):
                held = pending.pop(entry.producer_id, None)
                if held is not None and entry.is_commit and (counts is None or held > counts):
                    counts = held
                continue
            for key, value in entry.records:
                if isinstance(records.decode_key(key), OffsetKey):
                    offset = None if value is None else records.decode_offset(value).offset
                    if entry.producer_id >= 0:
                        pending[entry.producer_id] = (at, offset)
                    else:
                        counts = (at, offset)
        assert self.room.committed() == (None if counts is None else counts[1])
        assert self.room.group.offsets.is_settled == (not pending)

    def teardown(self) -> None:
        """After a long time with a working log, requests are answered, and no member is left."""
        room = self.room
        room.writes = True
        room.write()
        room.pass_time(1000)
        assert not [ticket for ticket in self.joins if ticket not in room.answers]
        assert not [ticket for ticket in self.syncs if ticket not in room.answers]
        assert room.is_in(GroupStatus.EMPTY)


GroupMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=50, derandomize=True
)
TestGroup = GroupMachine.TestCase
