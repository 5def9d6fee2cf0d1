"""The members of a group are compared with what its coordinators have acknowledged."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.coordinator.groups.events import Join
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig, Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.replica.events import Role
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from broker_impl.wire.messages.sync_group_request import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from broker_impl.wire.types import TopicPartition
from checkers.invariants.stored_members import StoredMembers
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_members import MemberWitness

HOME = TopicPartition("__consumer_offsets", 3)
BEAT = HeartbeatRequest("g", 3, "b")
SYNC = SyncGroupRequest("g", 3, "b")
REJOIN = JoinGroupRequest("g", group_instance_id="i")


def _member(name: str, instance: str | None = None) -> Member:
    join = Join(
        ticket=0,
        member_id=name,
        fresh_id=name,
        instance_id=instance,
        session_timeout_ms=6000,
        rebalance_timeout_ms=1500,
        protocols=(),
    )
    return Member(name, join)


class Coordinator:
    """A broker that coordinates the group g with its static member b."""

    def __init__(self, stored: StoredMembers) -> None:
        numbers = itertools.count(1)
        self.group: Any = Group("g", GroupConfig(), lambda: next(numbers), 0)
        self.group.generation = 3
        self.group.subscribed = frozenset()
        self.group.state = GroupStatus.STABLE
        self.has("b")
        log = SimpleNamespace(
            offline=None, end_offset=10, epochs=LeaderEpochs([EpochStart(2, 0), EpochStart(5, 8)])
        )
        self.home = SimpleNamespace(
            role=Role.LEADER,
            log=log,
            high_watermark=10,
            leader_epoch=5,
            zk_version=1,
            isr=frozenset({1, 2}),
            maximal_isr=frozenset({1, 2}),
            isr_min=2,
        )
        self.found: list[str] = []
        self.is_loading = False
        self.now_s = 10.0
        broker: Any = SimpleNamespace(
            replicas=SimpleNamespace(partitions={HOME: self.home}),
            groups=SimpleNamespace(
                partition_of=lambda name: HOME, find=self._find, is_loading=False
            ),
        )
        self.groups = broker.groups
        self.witness = MemberWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            broker,
            stored,
            clock=lambda: self.now_s,
        )

    def _find(self, name: str) -> Any:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.is_loading else self.group

    def has(self, member: str) -> None:
        """The group has this static member from now on."""
        self.group.members = {member: _member(member, "i")}
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


def test_a_member_that_joins_again_under_its_id_stores_nothing() -> None:
    """So the join that failed may still be stored: the next coordinator may have the other one."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    first.ask(SYNC)
    assert first.ask(REJOIN, error_code=27, generation_id=-1, member_id="") == []
    again = JoinGroupRequest("g", member_id="b", group_instance_id="i")
    assert first.ask(again, generation_id=3, member_id="b") == []
    later.home.leader_epoch = 6
    later.has("c")
    assert later.ask(BEAT) == []


def test_a_leader_that_assigns_twice() -> None:
    """The next coordinator may have either of the assignments."""
    for times, is_wrong in ((1, True), (2, False)):
        stored = StoredMembers()
        first, later = Coordinator(stored), Coordinator(stored)
        assigns = SyncGroupRequest("g", 3, "b", assignments=[SyncGroupRequestAssignment("b", b"1")])
        for _ in range(times):
            first.ask(assigns)
        later.group.members["b"].assignment = b"other"
        later.home.leader_epoch = 6
        assert later.ask(BEAT) == (["members-as-stored"] if is_wrong else [])


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


@pytest.mark.parametrize(
    ("code", "leave", "is_early"),
    [
        (0, None, True),
        (27, None, True),
        (22, None, False),
        (30, None, False),  # the client has no right to use the group
        (0, LeaveGroupRequest("g", "a"), False),
        (0, LeaveGroupRequest("g", members=[MemberIdentity("", "b")]), True),
        (0, LeaveGroupRequest("g", members=[MemberIdentity("a", None)]), False),
    ],
)
def test_a_member_is_removed_after_its_timeouts(code: int, leave: Any, is_early: bool) -> None:
    """Its heartbeats are accepted, and it does not leave."""
    coordinator = Coordinator(StoredMembers())
    coordinator.group.members["a"] = _member("a")
    assert coordinator.ask(HeartbeatRequest("g", 3, "a"), error_code=code) == []
    if leave is not None:
        assert coordinator.witness(leave) is not None
    coordinator.now_s += 0.5
    del coordinator.group.members["a"]
    coordinator.group.generation = 4
    assert coordinator.ask(BEAT) == (["removed-after-timeout"] if is_early else [])


def test_a_static_member_may_leave_without_its_member_id() -> None:
    """As tools remove it."""
    coordinator = Coordinator(StoredMembers())
    coordinator.ask(BEAT)
    coordinator.witness(LeaveGroupRequest("g", members=[MemberIdentity("", "i")]))
    coordinator.group.members = {}
    coordinator.group.static = {}
    assert coordinator.ask(BEAT) == []


@pytest.mark.parametrize(
    ("sync", "is_late"),
    [
        (SYNC, False),
        (SyncGroupRequest("g", 2, "b"), True),
        (SyncGroupRequest("g", 3, "b", protocol_type="other"), True),
        (SyncGroupRequest("g", 3, "b", protocol_name="other"), True),
    ],
)
def test_a_member_that_does_not_sync_is_removed_in_time(sync: Any, is_late: bool) -> None:
    """A refused SyncGroup does not count."""
    coordinator = Coordinator(StoredMembers())
    coordinator.group.state = GroupStatus.COMPLETING
    coordinator.group.protocol_type = "consumer"
    assert coordinator.ask(BEAT) == []
    assert coordinator.ask(sync) == []
    coordinator.now_s += 3.1
    assert coordinator.ask(BEAT) == []
    coordinator.now_s += 0.2
    assert coordinator.ask(BEAT) == (["rebalance-in-time"] if is_late else [])


@pytest.mark.parametrize(("own_ms", "is_late"), [(700, True), (9000, False), (-1, False)])
def test_a_rebalance_ends_in_time(own_ms: int, is_late: bool) -> None:
    """Before JoinGroup v1, the session timeout is that of rebalances, too."""
    coordinator = Coordinator(StoredMembers())
    coordinator.ask(BEAT)
    join = JoinGroupRequest("g", session_timeout_ms=6000, rebalance_timeout_ms=own_ms)
    assert coordinator.witness(join) is None
    coordinator.group.state = GroupStatus.PREPARING
    coordinator.group.members["a"] = _member("a")
    coordinator.group.members["a"].joining = 1
    found = []
    for _ in range(4):
        coordinator.now_s += 2.0
        found += coordinator.ask(BEAT)
    assert found == (["rebalance-in-time"] if is_late else [])


def test_another_coordinator_begins_to_count_again() -> None:
    """The members of a group that was loaded have a whole session."""
    coordinator = Coordinator(StoredMembers())
    coordinator.ask(BEAT)
    group = coordinator.group
    other = Coordinator(StoredMembers()).group
    coordinator.group = other
    other.members = {}
    assert coordinator.ask(BEAT) == []
    coordinator.group = None
    assert coordinator.ask(BEAT) == []
    coordinator.group = group
    assert coordinator.ask(BEAT) == []


def _loads(coordinator: Coordinator) -> list[str]:
    """Let a broker become a coordinator, and return the violations once it has loaded a group."""
    coordinator.home.leader_epoch = 6
    coordinator.groups.is_loading = True
    assert coordinator.ask(LeaderAndIsrRequest()) == []
    assert coordinator.ask(None) == []
    coordinator.groups.is_loading = False
    return coordinator.ask(None)


@pytest.mark.parametrize(
    ("change", "is_wrong"),
    [
        (lambda group: None, False),
        (lambda group: setattr(group.members["b"], "session_timeout_ms", 1500), True),
        (lambda group: setattr(group.members["b"], "assignment", b"other"), True),
    ],
)
def test_groups_are_judged_when_they_are_loaded(change: Any, is_wrong: bool) -> None:
    """No client asks for the group: it is judged after the broker has loaded it."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    assert first.ask(SYNC) == []
    change(later.group)
    assert _loads(later) == (["members-as-stored"] if is_wrong else [])
    assert later.ask(None) == []


def test_the_topics_of_a_group_are_judged() -> None:
    """A coordinator that does not know them deletes offsets that are in use."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    for each in (first, later):
        each.group.members["b"].instance_id = None
    first.group.subscribed = frozenset({"t"})
    first.ask(SYNC)
    assert _loads(later) == ["members-as-stored"]


@pytest.mark.parametrize(
    ("changes", "is_wrong"),
    [
        ({}, True),
        ({"isr_min": 3}, False),  # the record was perhaps refused
        ({"zk_version": 2}, False),  # the ISR was perhaps smaller meanwhile
        ({"role": Role.FOLLOWER}, False),
        ({"high_watermark": 9}, False),  # the record is not committed
    ],
)
def test_a_group_without_members_is_stored(changes: dict[str, Any], is_wrong: bool) -> None:
    """The next coordinator does not have the members again that have left."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    on_answer = first.witness(LeaveGroupRequest("g", members=[MemberIdentity("b", "i")]))
    first.group.members, first.group.static = {}, {}
    first.group.state, first.group.generation = GroupStatus.EMPTY, 4
    for name, value in changes.items():
        setattr(first.home, name, value)
    assert on_answer is not None
    on_answer(SimpleNamespace(error_code=0, members=()))
    assert first.ask(None) == []
    assert _loads(later) == (["members-as-stored"] if is_wrong else [])


def test_a_record_is_not_awaited_after_another_coordinator() -> None:
    """The log of the next leader perhaps lacks it."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    first.home.high_watermark = 9
    assert first.ask(BEAT) == []
    first.group.members, first.group.static = {}, {}
    first.group.state, first.group.generation = GroupStatus.EMPTY, 4
    first.now_s += 6.0
    assert first.ask(BEAT, error_code=25) == []
    first.home.leader_epoch, first.home.high_watermark = 7, 10
    assert first.ask(None) == []
    assert _loads(later) == []


@pytest.mark.parametrize(
    ("code", "asks", "is_wrong"),
    [(0, [], True), (68, [], False), (0, [JoinGroupRequest("g")], False)],
)
def test_a_group_that_was_deleted_does_not_come_back(
    code: int, asks: list[Any], is_wrong: bool
) -> None:
    """Unless the deletion was refused, or a member has joined since, even at another broker."""
    stored = StoredMembers()
    first, later = Coordinator(stored), Coordinator(stored)
    row = SimpleNamespace(group_id="g", error_code=code)
    assert first.ask(DeleteGroupsRequest(["g"]), results=[row]) == []
    later.is_loading = True
    for each in asks:
        assert later.ask(each) == []
    later.is_loading = False
    assert _loads(later) == (["members-as-stored"] if is_wrong else [])


@pytest.mark.parametrize(
    ("leave", "answer", "is_wrong"),
    [
        (LeaveGroupRequest("g", "b"), {}, True),
        (LeaveGroupRequest("g", "b"), {"error_code": 25}, False),
        (LeaveGroupRequest("g", "a"), {}, False),
        (LeaveGroupRequest("g"), {"members": [("a", None, 0), ("b", None, 0)]}, True),
        (LeaveGroupRequest("g"), {"members": [("a", None, 0), ("b", None, 82)]}, False),
        (LeaveGroupRequest("g"), {"members": [("", "i", 0)]}, True),
        (LeaveGroupRequest("g"), {"members": [("", "i", 0)], "error_code": 16}, False),
        (LeaveGroupRequest("g"), {"members": [("", "j", 0)]}, False),
    ],
)
def test_a_member_that_has_left_is_not_in_the_group(
    leave: Any, answer: dict[str, Any], is_wrong: bool
) -> None:
    """It names itself, or a tool names it by its instance id."""
    rows = [
        SimpleNamespace(member_id=member, group_instance_id=instance, error_code=code)
        for member, instance, code in answer.get("members", ())
    ]
    found = Coordinator(StoredMembers()).ask(leave, **{**answer, "members": rows})
    assert found == (["left-as-acknowledged"] if is_wrong else [])


def test_a_group_that_was_unloaded_since_is_not_judged() -> None:
    """Another coordinator has perhaps other members."""
    coordinator = Coordinator(StoredMembers())
    on_answer = coordinator.witness(LeaveGroupRequest("g", "b"))
    coordinator.is_loading = True
    assert on_answer is not None
    on_answer(SimpleNamespace(error_code=0, members=()))
    assert coordinator.found == []
    assert coordinator.witness(LeaveGroupRequest("g", "b")) is None
