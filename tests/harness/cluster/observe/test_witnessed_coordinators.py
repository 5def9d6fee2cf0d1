"""Answers of coordinators are compared with their groups and transactions."""

import copy
import itertools
from types import SimpleNamespace
from typing import Any

from broker_impl.coordinator.groups.events import Join
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig, Member
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.join_group_request import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from broker_impl.wire.messages.sync_group_request import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_coordinators import CoordinatorWitness, Producers


class Coordinator:
    """A broker with one group and one transactional id, whose answers the test makes up."""

    def __init__(self) -> None:
        numbers = itertools.count(1)
        self.group = Group("g", GroupConfig(), lambda: next(numbers), 0)
        self.group.generation = 3
        for name in ("a", "b"):
            self.group.members[name] = Member(
                name,
                Join(
                    ticket=0,
                    member_id=name,
                    fresh_id=name,
                    session_timeout_ms=1,
                    rebalance_timeout_ms=1,
                    protocols=(("range", b"1"),),
                ),
            )
        self.group.state = GroupStatus.STABLE
        self.metadata: Metadata | ErrorCode = Metadata(
            producer_id=7, producer_epoch=2, timeout_ms=1, state=TransactionState.COMPLETE_COMMIT
        )
        self.found: list[str] = []
        broker: Any = SimpleNamespace(
            config=SimpleNamespace(group_max_size=2),
            groups=SimpleNamespace(find=lambda name: self.group if name == "g" else None),
            transactions=SimpleNamespace(
                describe=lambda name: self.metadata if name == "t" else ErrorCode.NOT_COORDINATOR
            ),
        )
        self.witness = CoordinatorWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            broker,
            Producers(),
        )

    def ask(self, request: Any, **answer: Any) -> list[str]:
        """Answer a request with these fields; return the violations."""
        self.found.clear()
        on_answer = self.witness(request)
        assert on_answer is not None
        on_answer(SimpleNamespace(**{"error_code": 0, **answer}))
        return list(self.found)


def test_heartbeats_of_an_old_generation_are_refused() -> None:
    """The coordinator of the test accepts them, or refuses one that is right."""
    coordinator = Coordinator()
    old = HeartbeatRequest(group_id="g", member_id="a", generation_id=2)
    right = HeartbeatRequest(group_id="g", member_id="a", generation_id=3)
    assert coordinator.ask(old, error_code=22) == []
    assert coordinator.ask(old) == ["member-refused"]
    assert coordinator.ask(right) == []
    assert coordinator.ask(right, error_code=25) == ["member-refused"]
    other = HeartbeatRequest(group_id="unknown", member_id="a", generation_id=2)
    assert coordinator.ask(other) == [], "another broker may have the group"


def test_offsets_of_an_old_generation_are_refused_in_transactions() -> None:
    """A group that changes between request and answer is not judged, and no name is needed."""
    coordinator = Coordinator()
    accepted = [SimpleNamespace(partitions=[SimpleNamespace(error_code=0)])]
    refused = [SimpleNamespace(partitions=[SimpleNamespace(error_code=22)])]

    def commit(generation: int, topics: Any = accepted, member: str = "a") -> list[str]:
        request = TxnOffsetCommitRequest(
            group_id="g", producer_id=7, member_id=member, generation_id=generation
        )
        return coordinator.ask(request, topics=topics)

    assert commit(2) == ["member-refused"]
    assert commit(2, refused) == []
    assert commit(3) == []
    assert commit(3, refused) == ["member-refused"]
    assert commit(3, member="c") == ["member-refused"]
    assert commit(-1, member="") == []
    on_answer = coordinator.witness(
        TxnOffsetCommitRequest(group_id="g", producer_id=7, member_id="a", generation_id=3)
    )
    coordinator.group.generation = 4
    coordinator.found.clear()
    assert on_answer is not None
    on_answer(SimpleNamespace(topics=accepted))
    assert coordinator.found == []


def joined(generation: int, *members: str) -> dict[str, Any]:
    """Return the answer to the JoinGroup of the leader, a."""
    rows = [
        SimpleNamespace(member_id=member, group_instance_id=None, metadata=b"1")
        for member in members
    ]
    chosen = {"leader": "a", "protocol_name": "range"}
    return {"generation_id": generation, "member_id": "a", "members": rows, **chosen}


def join_of(member: str, subscription: bytes = b"1", **fields: Any) -> JoinGroupRequest:
    """Return a JoinGroup with this subscription."""
    protocols = [JoinGroupRequestProtocol("range", subscription)]
    return JoinGroupRequest(group_id="g", member_id=member, protocols=protocols, **fields)


def test_members_join_each_generation() -> None:
    """Member b has not joined the fourth generation, and is a member of it all the same."""
    coordinator = Coordinator()
    join = join_of("a")
    other = join_of("b")
    assert coordinator.witness(other) is not None
    assert coordinator.ask(join, **joined(3, "a", "b")) == []
    coordinator.group.generation = 4
    assert coordinator.ask(join, **joined(4, "a", "b")) == ["joined-as-member"]
    coordinator.group.generation = 5
    assert coordinator.witness(other) is not None
    assert coordinator.ask(join, **joined(5, "a", "b")) == []


def test_a_generation_has_no_more_members_than_configured() -> None:
    """The coordinator of the test has two members, and may have no third one."""
    coordinator = Coordinator()
    assert coordinator.ask(join_of("a"), **joined(3, "a", "b")) == []
    assert coordinator.ask(join_of("a"), **joined(3, "a", "b", "c")) == ["joined-as-member"]


def test_another_subscription_begins_a_generation() -> None:
    """The leader of a stable group begins one with the same subscription, too."""
    coordinator = Coordinator()
    changed = join_of("a", b"topics")
    assert coordinator.ask(join_of("a"), **joined(3)) == []
    assert coordinator.ask(join_of("", b"topics"), **joined(3)) == []
    assert coordinator.ask(changed, **joined(3)) == ["joined-as-member"]
    assert coordinator.ask(changed, error_code=27, **joined(3)) == []
    coordinator.group.members["a"].protocols = {"range": b"topics"}
    assert coordinator.ask(changed, **joined(3)) == []
    coordinator.group.leader = "a"
    assert coordinator.ask(changed, **joined(3)) == ["joined-as-member"]


def test_members_receive_what_their_leader_sends() -> None:
    """The answer to a member is compared with the request of the leader."""
    coordinator = Coordinator()
    given = [SyncGroupRequestAssignment(member_id=name, assignment=name.encode()) for name in "ab"]
    leader = SyncGroupRequest(group_id="g", generation_id=3, member_id="a", assignments=given)
    follower = SyncGroupRequest(group_id="g", generation_id=3, member_id="b")
    assert coordinator.ask(leader, assignment=b"a") == []
    assert coordinator.ask(follower, assignment=b"b") == []
    assert coordinator.ask(follower, assignment=b"a") == ["assigned-as-given"]


def test_a_static_member_that_came_again_receives_what_its_former_id_was_assigned() -> None:
    """An earlier group of the same name does not count: its numbers of generations come again."""
    coordinator = Coordinator()

    def begin(former: str) -> None:
        answer = joined(3, former)
        answer["members"][0].group_instance_id = "i"
        coordinator.ask(join_of("a"), **answer)
        leader = SyncGroupRequest(
            group_id="g",
            generation_id=3,
            member_id="a",
            assignments=[SyncGroupRequestAssignment(former, former.encode())],
        )
        coordinator.ask(leader, assignment=b"")

    again = SyncGroupRequest(group_id="g", generation_id=3, member_id="b", group_instance_id="i")
    coordinator.group.members["b"].instance_id = "i"
    begin("first")
    assert coordinator.ask(again, assignment=b"first") == []
    assert coordinator.ask(again, assignment=b"") == ["assigned-as-given"]
    begin("second")
    assert coordinator.ask(again, assignment=b"second") == []
    assert coordinator.ask(again, assignment=b"first") == ["assigned-as-given"]


def test_a_group_that_is_loaded_again_may_be_another_one() -> None:
    """It had another coordinator meanwhile, and its generations may have begun again."""
    coordinator = Coordinator()
    sent = [SyncGroupRequestAssignment("a", b"sent")]
    leader = SyncGroupRequest(group_id="g", generation_id=3, member_id="a", assignments=sent)
    member = SyncGroupRequest(group_id="g", generation_id=3, member_id="a")
    assert coordinator.ask(leader, assignment=b"sent") == []
    assert coordinator.ask(member, assignment=b"other") == ["assigned-as-given"]
    coordinator.group = copy.copy(coordinator.group)
    assert coordinator.ask(member, assignment=b"other") == []


def test_a_group_with_members_is_not_deleted() -> None:
    """An error for the group is right."""
    coordinator = Coordinator()
    request = DeleteGroupsRequest(groups_names=["g"])
    deleted = [SimpleNamespace(group_id="g", error_code=0)]
    refused = [SimpleNamespace(group_id="g", error_code=68)]
    assert coordinator.ask(request, results=refused) == []
    assert coordinator.ask(request, results=deleted) == ["group-deleted-unused"]


def test_transactions_are_ended_by_their_producer_in_one_way() -> None:
    """The transaction was committed by producer 7 in epoch 2."""
    coordinator = Coordinator()

    def end(epoch: int, *, committed: bool) -> list[str]:
        request = EndTxnRequest(
            transactional_id="t", producer_id=7, producer_epoch=epoch, committed=committed
        )
        return coordinator.ask(request)

    assert end(2, committed=True) == []
    assert end(2, committed=False) == ["producer-refused"]
    assert end(3, committed=True) == ["producer-refused"]


def test_open_transactions_keep_their_partitions() -> None:
    """A transaction may end while its coordinator loads its state, and the next one begin."""
    coordinator = Coordinator()

    def has(state: TransactionState, partition: int) -> None:
        coordinator.metadata = Metadata(
            producer_id=7,
            producer_epoch=2,
            timeout_ms=1,
            state=state,
            partitions=(TopicPartition("x", partition),),
        )

    def add(*partitions: int) -> list[str]:
        rows = [
            SimpleNamespace(partition_index=number, partition_error_code=0) for number in partitions
        ]
        return coordinator.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="t",
                v3_and_below_producer_id=7,
                v3_and_below_producer_epoch=2,
            ),
            results_by_topic_v3_and_below=[SimpleNamespace(name="x", results_by_partition=rows)],
        )

    def end(*, loads: bool) -> None:
        request = EndTxnRequest(transactional_id="t", producer_id=7, producer_epoch=2)
        if loads:
            coordinator.metadata = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        on_answer = coordinator.witness(request)
        has(TransactionState.PREPARE_ABORT, 0)
        assert on_answer is not None
        on_answer(SimpleNamespace(error_code=0))

    for loads in (False, True):
        has(TransactionState.ONGOING, 0)
        assert add(0) == []
        end(loads=loads)
        assert coordinator.found == []
    has(TransactionState.ONGOING, 1)
    assert add(1) == []
    has(TransactionState.ONGOING, 2)
    assert add(2) == ["added-partition-kept"]


def test_epochs_are_issued_once() -> None:
    """A request for the next epoch names no epoch, or that of the current producer."""
    coordinator = Coordinator()

    def issue(epoch: int, named: int = -1) -> list[str]:
        request = InitProducerIdRequest(transactional_id="t", producer_id=named)
        return coordinator.ask(request, producer_id=7, producer_epoch=epoch)

    assert issue(3) == []
    assert issue(3) == ["epoch-issued-once"]
    assert issue(3, named=7) == [], "it repeats its request"
    assert issue(4, named=8) == ["producer-refused"]


def test_the_leader_receives_the_subscriptions_of_members() -> None:
    """A static member that takes the place of another one ends the comparison."""
    coordinator = Coordinator()
    follower = {**joined(3), "member_id": "b"}
    assert coordinator.ask(join_of("a"), **joined(3, "a", "b")) == []
    assert coordinator.ask(join_of("b"), **follower) == []
    coordinator.group.members["b"].protocols = {"range": b"2"}
    assert coordinator.ask(join_of("b", b"2"), **follower) == ["subscribed-as-sent"]
    assert coordinator.witness(join_of("", b"1", group_instance_id="i")) is not None
    assert coordinator.ask(join_of("b", b"2"), **follower) == []
