"""The members of a group are compared with what its coordinators have acknowledged."""

import itertools
from types import SimpleNamespace
from typing import Any

from broker_impl.coordinator.groups.events import Join
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig, Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.replica.events import Role
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants.stored_members import StoredMembers
from harness.cluster.observe.witnessed_members import MemberWitness

HOME = TopicPartition("__consumer_offsets", 3)
BEAT = HeartbeatRequest("g", 3, "b")
SYNC = SyncGroupRequest("g", 3, "b")
REJOIN = JoinGroupRequest("g", group_instance_id="i")


class Coordinator:
    """A broker that coordinates the group g with its static member b."""

    def __init__(self, stored: StoredMembers) -> None:
        numbers = itertools.count(1)
        self.group: Any = Group("g", GroupConfig(), lambda: next(numbers), 0)
        self.group.generation = 3
        self.group.state = GroupStatus.STABLE
        self.has("b")
        log = SimpleNamespace(
            offline=None, end_offset=10, epochs=LeaderEpochs([EpochStart(2, 0), EpochStart(5, 8)])
        )
        self.home = SimpleNamespace(role=Role.LEADER, log=log, high_watermark=10, leader_epoch=5)
        self.found: list[str] = []
        self.is_loading = False
        broker: Any = SimpleNamespace(
            replicas=SimpleNamespace(partitions={HOME: self.home}),
            groups=SimpleNamespace(partition_of=lambda name: HOME, find=self._find),
        )
        self.witness = MemberWitness(
            1,
            broker,
            stored,
            now_ns=lambda: 0,
            report=lambda violation: self.found.append(violation.invariant),
        )

    def _find(self, name: str) -> Any:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.is_loading else self.group

    def has(self, member: str) -> None:
        """The group has this static member from now on."""
        join = Join(
            ticket=0,
            member_id=member,
            fresh_id=member,
            instance_id="i",
            session_timeout_ms=1,
            rebalance_timeout_ms=1,
            protocols=(),
        )
        self.group.members = {member: Member(member, join)}
        self.group.static = {"i": member}

    def ask(self, request: Any, *, to: str | None = None, **answer: Any) -> list[str]:
        """Answer a request, after member ``to`` has come; return the violations."""
        self.found.clear()
        on_answer = self.witness(request)
        if to is not None:
            self.has(to)
        if on_answer is not None:
            on_answer(SimpleNamespace(**{"error_code": 0, **answer}))
        return list(self.found)


def test_a_static_member_that_was_replaced_does_not_come_back() -> None:
    """The next coordinator has loaded the former one."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    assert first.ask(SYNC) == []
    assert first.ask(REJOIN, to="c", generation_id=3, member_id="c") == []
    assert first.ask(BEAT) == []
    later.home.leader_epoch = 6
    later.is_loading = True
    assert later.ask(BEAT) == []
    later.is_loading = False
    assert later.ask(BEAT) == ["members-as-stored"]
    later.has("c")
    assert later.ask(BEAT) == []


def test_a_join_that_failed_may_have_been_stored() -> None:
    """The former coordinator has the former member again, and the next one the other."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    first.ask(SYNC)
    assert first.ask(REJOIN, error_code=27, generation_id=-1, member_id="") == []
    assert first.ask(SYNC) == []
    later.home.leader_epoch = 6
    later.has("c")
    assert later.ask(BEAT) == []


def test_a_coordinator_without_the_records_is_not_judged() -> None:
    """It leads in an earlier epoch, or its log has other records."""
    stored = StoredMembers()
    first, other = Coordinator(stored), Coordinator(stored)
    first.ask(SYNC)
    first.ask(REJOIN, to="c", generation_id=3, member_id="c")
    other.home.leader_epoch = 4
    assert other.ask(BEAT) == []
    other.home.leader_epoch = 6
    other.home.log.end_offset = 9
    assert other.ask(BEAT) == []
