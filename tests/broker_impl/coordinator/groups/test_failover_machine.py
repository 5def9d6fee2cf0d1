"""At any time, the next coordinator would load the state that the present coordinator has."""

import itertools
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker_impl.coordinator import partitioner
from broker_impl.coordinator.groups.coordinator import Groups
from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Delete,
    DeleteOffsets,
    Effect,
    Join,
    Leave,
    Marked,
    Sync,
    Tick,
    Write,
    Written,
)
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import RANGE

GROUP = "g"
HOME = partitioner.partition_of(GROUP, 5)
PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0))
CONFIG = GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=1000)
partitions = st.sampled_from(PARTITIONS)
who = st.integers(0, 4)


class FailoverMachine(RuleBasedStateMachine):
    """One group, one log, and one coordinator after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Write | tuple[int, bool]] = []
        """Writes and markers, in the order of the log."""
        self.under_way: list[Write] = []
        self.acked: dict[TopicPartition, int] = {}
        self.asked: dict[int, tuple[TopicPartition, int]] = {}
        self.answers: dict[int, Any] = {}
        self.numbers = itertools.count(1)
        self.now = 0.0
        self.now_ms = 1_000_000
        self.groups = self.next_coordinator()

    def next_coordinator(self) -> Groups:
        groups = Groups(CONFIG, 5)
        loading = groups.begin_loading(HOME)
        for at, entry in enumerate(self.log):
            if isinstance(entry, Write):
                rows = [(at * 10, key, value) for key, value in entry.records]
                loading.rows(rows, entry.producer_id)
            else:
                loading.marker(entry[0], at * 10, is_commit=entry[1])
        groups.loaded(HOME, self.now, self.now_ms)
        return groups

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Write):
                self.under_way.append(effect)
                continue
            assert isinstance(effect, Answered)
            self.answers[effect.ticket] = effect.answer
            if effect.ticket in self.asked and effect.answer is E.NONE:
                tp, offset = self.asked[effect.ticket]
                self.acked[tp] = offset

    def ask(self, kind: Any, **fields: Any) -> int:
        ticket = next(self.numbers)
        request = kind(ticket=ticket, **fields)
        self.carry_out(self.groups.handle(GROUP, request, self.now, self.now_ms))
        return ticket

    def forget(self) -> None:
        """Expect no longer that the commits requested so far are the ones that count."""
        self.acked.clear()
        self.asked.clear()

    @property
    def members(self) -> list[str]:
        group = self.groups.find(GROUP)
        return [] if group is None else list(group.members)

    @property
    def generation(self) -> int:
        group = self.groups.find(GROUP)
        return 0 if group is None else group.generation

    @rule(instance=st.sampled_from([None, None, "i"]))
    def join(self, instance: str | None) -> None:
        fresh = f"m{next(self.numbers)}"
        self.ask(Join, member_id="", fresh_id=fresh, instance_id=instance, protocols=RANGE)

    @rule()
    def rebalance(self) -> None:
        for member in self.members:
            group = self.groups.find(GROUP)
            assert group is not None
            if member in group.members:
                instance = group.members[member].instance_id
                fields = {"instance_id": instance, "protocols": RANGE}
                self.ask(Join, member_id=member, fresh_id="", **fields)
        self.tick()
        for member in self.members:
            parts = {each: f"{each}@{self.generation}".encode() for each in self.members}
            self.ask(Sync, member_id=member, generation=self.generation, assignments=parts)

    @rule(number=who)
    def leave(self, number: int) -> None:
        if self.members:
            member = self.members[number % len(self.members)]
            self.ask(Leave, members=((member, None),))

    @rule(number=who, tp=partitions, offset=st.integers(0, 99))
    def commit(self, number: int, tp: TopicPartition, offset: int) -> None:
        credentials: dict[str, Any] = {}
        if self.members:
            member = self.members[number % len(self.members)]
            group = self.groups.find(GROUP)
            assert group is not None
            instance = group.members[member].instance_id
            credentials = {
                "member_id": member,
                "generation": self.generation,
                "instance_id": instance,
            }
        kept = Committed(offset, committed_ms=self.now_ms)
        ticket = next(self.numbers)
        self.asked[ticket] = (tp, offset)
        request = Commit(ticket=ticket, offsets={tp: kept}, **credentials)
        self.carry_out(self.groups.handle(GROUP, request, self.now, self.now_ms))

    @rule(tp=partitions, offset=st.integers(100, 199), producer=st.sampled_from([7, 8]))
    def commit_in_a_transaction(self, tp: TopicPartition, offset: int, producer: int) -> None:
        kept = Committed(offset, committed_ms=self.now_ms)
        self.ask(Commit, offsets={tp: kept}, producer_id=producer, producer_epoch=0)

    @rule(producer=st.sampled_from([7, 8]), is_commit=st.booleans())
    def mark(self, producer: int, is_commit: bool) -> None:
        """Commit all pending writes together with a marker, and report the marker first."""
        writes, self.under_way = self.under_way, []
        places = [(len(self.log) + number) * 10 for number in range(len(writes))]
        self.log += writes
        marked = Marked(producer_id=producer, at=len(self.log) * 10, is_commit=is_commit)
        self.log.append((producer, is_commit))
        self.carry_out(self.groups.marked(HOME, marked, self.now, self.now_ms))
        for write, at in zip(writes, places, strict=True):
            written = Written(number=write.number, error=E.NONE, offset=at)
            self.carry_out(self.groups.written(written, self.now, self.now_ms))
        self.forget()  # offsets of a transaction may have replaced them

    @rule(tp=partitions)
    def delete_offsets(self, tp: TopicPartition) -> None:
        self.ask(DeleteOffsets, partitions=(tp,))
        self.forget()

    @rule(tp=partitions)
    def topic_gone(self, tp: TopicPartition) -> None:
        self.carry_out(self.groups.topics_gone((tp,), self.now, self.now_ms))
        self.forget()

    @rule()
    def delete(self) -> None:
        self.ask(Delete)
        self.forget()

    @rule(seconds=st.sampled_from([1, 11, 61]))
    def time(self, seconds: int) -> None:
        self.now += seconds
        self.now_ms += seconds * 1000
        self.tick()

    @rule()
    def expire(self) -> None:
        self.carry_out(self.groups.expire(self.now, self.now_ms))
        self.forget()

    def tick(self) -> None:
        self.carry_out(self.groups.pass_event(GROUP, Tick(), self.now, self.now_ms))

    @rule(count=st.integers(1, 5))
    def replicate(self, count: int) -> None:
        for _ in range(min(count, len(self.under_way))):
            write = self.under_way.pop(0)
            at = len(self.log) * 10
            self.log.append(write)
            written = Written(number=write.number, error=E.NONE, offset=at)
            self.carry_out(self.groups.written(written, self.now, self.now_ms))

    @rule(survive=st.integers(0, 2))
    def fail_over(self, survive: int) -> None:
        """Fail over: the next leader's log has some of the pending writes, the others are lost."""
        lost, self.under_way = self.under_way, []
        self.carry_out(self.groups.unload(HOME, self.now, self.now_ms))
        for write in lost:
            written = Written(number=write.number, error=E.NOT_LEADER_OR_FOLLOWER)
            self.carry_out(self.groups.written(written, self.now, self.now_ms))
        assert not self.under_way
        self.log += lost[:survive]
        if lost[:survive]:
            self.forget()  # unacknowledged commits may count now
        self.groups = self.next_coordinator()

    @invariant()
    def the_next_coordinator_would_know_the_same(self) -> None:
        if self.under_way:
            return
        live, read = self.groups.find(GROUP), self.next_coordinator().find(GROUP)
        if live is None:
            assert read is None
            return
        for tp in PARTITIONS:
            assert live.offsets.get(tp) == (None if read is None else read.offsets.get(tp))
        open_there = frozenset[int]() if read is None else read.offsets.pending_producers
        assert live.offsets.pending_producers == open_there
        if live.state is GroupStatus.STABLE:
            assert read is not None
            assert read.snapshot() == live.snapshot()

    @invariant()
    def what_was_acknowledged_last_counts(self) -> None:
        group = self.groups.find(GROUP)
        for tp, offset in self.acked.items():
            kept = None if group is None else group.offsets.get(tp)
            assert kept is not None
            assert kept.offset == offset


FailoverMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, derandomize=True
)
TestFailover = FailoverMachine.TestCase


TP = PARTITIONS[0]


def _delete_and_commit(machine: FailoverMachine) -> None:
    """Offset 100 of producer 7 counts, although a deletion is between it and its marker."""
    machine.delete_offsets(tp=TP)
    machine.mark(producer=7, is_commit=True)
    machine.the_next_coordinator_would_know_the_same()
    group = machine.groups.find(GROUP)
    assert group is not None
    kept = group.offsets.get(TP)
    assert kept is not None
    assert kept.offset == 100


def test_a_deletion_before_a_commit_marker_leaves_the_offset() -> None:
    """A transaction's offset counts from its marker on, even if a deletion is reported later."""
    machine = FailoverMachine()
    machine.commit_in_a_transaction(tp=TP, offset=100, producer=7)
    machine.commit(number=0, tp=TP, offset=0)
    machine.replicate(count=2)
    _delete_and_commit(machine)


def test_a_deletion_uncovers_what_it_did_not_remove() -> None:
    """An offset that replaced that of a transaction is deleted before the transaction's marker.

    The transaction's offset counts again.
    """
    machine = FailoverMachine()
    machine.commit(number=0, tp=TP, offset=0)
    machine.replicate(count=1)
    machine.commit_in_a_transaction(tp=TP, offset=100, producer=7)
    machine.commit(number=0, tp=TP, offset=1)
    _delete_and_commit(machine)
