"""Partitions are reassigned, added, and given new leaders on request."""

from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.elect_leaders_request import (
    ElectLeadersRequest,
    TopicPartitions,
)
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.zookeeper_requests import SteppedWrites, preceded

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
async def four(world: Any) -> Any:
    """Four brokers, the controller among them, and a partition with replicas on two of them."""
    await world.come(1, 2, 3, 4)
    world.controller = await world.contend(4)
    world.peers = world.controller.peers
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    return world


async def move(world: Any, wanted: list[int] | None, partition: int = 0) -> int:
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("t", [ReassignablePartition(partition, wanted)])]
    )
    answer = await world.controller.runtime.alter_reassignments(request)
    assert answer.error_code == 0
    return int(answer.responses[0].partitions[0].error_code)


async def moves(world: Any, *partitions: int) -> list[tuple[list[int], ...]]:
    topics = None
    if partitions:
        topics = [ListPartitionReassignmentsTopics("t", list(partitions))]
    request = ListPartitionReassignmentsRequest(topics=topics)
    answer = await world.controller.runtime.list_reassignments(request)
    return [
        (row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in answer.topics
        for row in topic.partitions
    ]


async def written(world: Any) -> zk_paths.TopicZnode:
    path = zk_paths.topic("t")
    data, _ = await world.zk.get(path)
    return zk_paths.decode(path, data, zk_paths.TopicZnode)


async def shrink(world: Any, *isr: int) -> None:
    """The leader writes another ISR, without a notice to the controller."""
    state = await world.state(T0)
    state.isr = list(isr)
    await world.zk.set(zk_paths.state(T0), zk_paths.encode(state))


async def in_sync(world: Any, *isr: int) -> None:
    """The leader writes another ISR, with a notice to the controller."""
    await shrink(world, *isr)
    notice = zk_paths.IsrChangeZnode(partitions=[zk_paths.PartitionName("t", 0)])
    await world.zk.create(zk_paths.ISR_CHANGE_PREFIX, zk_paths.encode(notice), sequential=True)


async def test_a_partition_moves(four: Any) -> None:
    """KIP-455: once all replicas of the target are in sync, the other replicas are deleted."""
    assert await move(four, [3, 4]) == 0
    assert await moves(four) == await moves(four, 0) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    assert await moves(four, 7) == []
    znode = await written(four)
    assert znode.partitions == {"0": [3, 4, 1, 2]}
    assert (znode.adding_replicas, znode.removing_replicas) == ({"0": [3, 4]}, {"0": [1, 2]})
    assert await four.led(T0, 1, 1, 2) == 1
    await four.until(lambda: len(four.peers.roles(3, T0)) == 1)
    [role] = four.peers.roles(3, T0)
    assert (role.leader, role.replicas) == (1, [3, 4, 1, 2])
    await in_sync(four, 1, 2, 3)
    await four.until(lambda: len(four.peers.metadata(4, T0)) >= 2)
    assert await moves(four) != []
    await in_sync(four, 1, 2, 3, 4)
    assert await four.led(T0, 3, 3, 4) == 2
    await four.until(lambda: all(four.peers.stops(number, T0) for number in (1, 2)))
    [stop] = four.peers.stops(1, T0)
    assert (stop.leader_epoch, stop.delete_partition) == (2, True)
    assert await moves(four) == []
    znode = await written(four)
    assert (znode.partitions, znode.adding_replicas) == ({"0": [3, 4]}, {})
    assert four.peers.roles(3, T0)[-1].replicas == [3, 4]


async def test_a_move_whose_isr_shrinks_meanwhile(world: Any) -> None:
    """A move is not completed if the leader removes a target replica before the controller writes.

    The controller completes it once all target replicas are in sync again.
    """
    zk = SteppedWrites(zk_paths.state(T0))
    await world.come(1, 2, 3, 4)
    world.controller = await world.contend(4, through=zk.around)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    assert await move(world, [3, 4]) == 0
    zk.steps.append(preceded(lambda: shrink(world, 1, 3)))
    await in_sync(world, 1, 2, 3, 4)
    await world.until(lambda: not zk.steps)
    assert await moves(world) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    assert await world.led(T0, 1, 1, 3) == 1
    assert not any(world.controller.peers.stops(number, T0) for number in (1, 2, 3, 4))
    await in_sync(world, 1, 3, 4)
    assert await world.led(T0, 3, 3, 4) == 2


async def deleted(world: Any, timeout_ms: int) -> int:
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=timeout_ms)
    answer = await world.controller.runtime.delete_topics(request)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_deletion_waits_for_a_removed_leader(four: Any, is_gone: bool) -> None:
    """The former leader may still write the ISR, until it has stopped or its session is over."""
    four.peers.silent.add(1)
    assert await move(four, [2]) == 0
    await four.led(T0, 2, 2)
    assert await deleted(four, 50) == ErrorCode.REQUEST_TIMED_OUT
    assert len(four.peers.stops(2, T0)) == 1
    assert await four.zk.exists(zk_paths.state(T0)) is not None
    if is_gone:
        await four.go(1)
    else:
        four.peers.silent.clear()
    await four.gone(zk_paths.delete_topic("t"))
    assert four.controller.runtime.controller_epoch == 1


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_deletion_does_not_wait_for_a_replica_that_has_stopped(
    four: Any, is_kept: bool
) -> None:
    """Nor if its log could not be deleted, because its directory has failed."""
    if is_kept:
        four.peers.keeping.add(1)
    assert await move(four, [2]) == 0
    await four.until(lambda: len(four.peers.stops(1, T0)) == 1)
    assert await deleted(four, 5000) == ErrorCode.NONE
    assert len(four.peers.stops(1, T0)) == 1


async def test_a_leader_that_is_to_stay_stays(four: Any) -> None:
    """A leader that is in the target stays, while replicas are added and removed."""
    await move(four, [2, 1, 3])
    await in_sync(four, 1, 2, 3)
    await four.until(lambda: len(four.peers.roles(3, T0)) == 2)
    assert (await moves(four), four.peers.stops(1, T0)) == ([], [])
    assert await move(four, [2, 3]) == 0
    await four.led(T0, 2, 2, 3)
    await four.until(lambda: bool(four.peers.stops(1, T0)))
    assert (await written(four)).partitions == {"0": [2, 3]}


async def test_a_move_is_cancelled(four: Any) -> None:
    """Cancelling a move deletes the added replicas, in the present epoch (KAFKA-13972)."""
    assert await move(four, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    await move(four, [3, 4])
    await in_sync(four, 1, 2, 3)
    await four.until(lambda: len(four.peers.metadata(4, T0)) >= 2)
    assert await move(four, None) == 0
    epoch = await four.led(T0, 1, 1, 2)
    await four.until(lambda: all(four.peers.stops(number, T0) for number in (3, 4)))
    assert four.peers.stops(3, T0)[0].leader_epoch == epoch
    assert await moves(four) == []
    znode = await written(four)
    assert (znode.partitions, znode.adding_replicas) == ({"0": [1, 2]}, {})


async def test_the_next_controller_goes_on(four: Any) -> None:
    """The next controller completes a move: all that it needs is stored in ZooKeeper."""
    await move(four, [3, 4])
    await four.controller.stop()
    four.contenders.remove(four.controller)
    await in_sync(four, 1, 2, 3, 4)
    four.controller = await four.contend(3)
    await four.led(T0, 3, 3, 4)
    await four.until(lambda: bool(four.controller.peers.stops(1, T0)))
    assert (await written(four)).partitions == {"0": [3, 4]}


@pytest.mark.parametrize(
    ("wanted", "partition", "error"),
    [
        ([], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_what_is_not_begun(
    four: Any, wanted: list[int], partition: int, error: ErrorCode
) -> None:
    """A refused reassignment leaves the assignment as it was."""
    assert await move(four, wanted, partition) == error
    assert (await written(four)).partitions == {"0": [1, 2]}


async def test_a_move_whose_target_alone_is_in_sync_is_not_turned_back(four: Any) -> None:
    """A move is not cancelled while only replicas of the target are in sync and alive.

    Records that were acknowledged since would be lost.
    """
    await move(four, [3, 4])
    await in_sync(four, 1, 3)
    await four.go(1)
    await four.led(T0, 3, 3)
    assert await move(four, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await moves(four) == [([3, 4, 1, 2], [3, 4], [1, 2])]
    assert four.peers.stops(3, T0) == []


# CreatePartitions.


async def extend(world: Any, *topics: CreatePartitionsTopic, validate_only: bool = False) -> Any:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=5000, validate_only=validate_only
    )
    answer = await world.controller.runtime.create_partitions(request)
    return [(row.name, row.error_code) for row in answer.results]


async def test_a_topic_gets_more_partitions(four: Any) -> None:
    """New partitions have leaders when CreatePartitions returns, and the others do not change."""
    topic = CreatePartitionsTopic("t", 3, None)
    assert await extend(four, topic) == [("t", 0)]
    znode = await written(four)
    assert (sorted(znode.partitions), znode.partitions["0"]) == (["0", "1", "2"], [1, 2])
    for number in (1, 2):
        state = await four.state(TopicPartition("t", number))
        assert state.leader == znode.partitions[str(number)][0]
    by_hand = CreatePartitionsTopic("t", 4, [CreatePartitionsAssignment([4, 2])])
    assert await extend(four, by_hand) == [("t", 0)]
    assert (await written(four)).partitions["3"] == [4, 2]


async def test_what_was_written_meanwhile_is_kept(four: Any) -> None:
    """C20: partitions are added to the stored assignment, not to the controller's copy of it."""
    znode = await written(four)
    znode.partitions["0"] = [1, 2, 3]
    await four.zk.set(zk_paths.topic("t"), zk_paths.encode(znode))
    await extend(four, CreatePartitionsTopic("t", 2, None))
    assert (await written(four)).partitions["0"] == [1, 2, 3]


async def test_partitions_that_are_not_created(four: Any) -> None:
    """CreatePartitions refuses fewer partitions, and unknown, repeated and moving topics."""
    fewer = CreatePartitionsTopic("t", 1, None)
    assert await extend(four, fewer) == [("t", ErrorCode.INVALID_PARTITIONS)]
    unknown = CreatePartitionsTopic("u", 2, None)
    assert await extend(four, unknown) == [("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    more = CreatePartitionsTopic("t", 2, None)
    assert await extend(four, more, more) == [("t", ErrorCode.INVALID_REQUEST)]
    assert await extend(four, more, validate_only=True) == [("t", 0)]
    assert list((await written(four)).partitions) == ["0"]
    await move(four, [3, 4])
    assert await extend(four, more) == [("t", ErrorCode.REASSIGNMENT_IN_PROGRESS)]


# ElectLeaders.


async def elect(world: Any, kind: int, *partitions: int, timeout_ms: int = 5000) -> Any:
    named = [TopicPartitions("t", list(partitions))] if partitions else None
    request = ElectLeadersRequest(kind, named, timeout_ms)
    answer = await world.controller.runtime.elect_leaders(request)
    assert answer.error_code == 0
    return [
        (row.partition_id, row.error_code)
        for topic in answer.replica_election_results
        for row in topic.partition_result
    ]


async def test_the_preferred_leader_is_elected(four: Any) -> None:
    """ElectLeaders elects the preferred leader if it is in sync and does not lead already."""
    assert await elect(four, PREFERRED, 0) == [(0, ErrorCode.ELECTION_NOT_NEEDED)]
    assert await elect(four, PREFERRED) == []
    await four.go(1)
    await four.led(T0, 2, 2)
    assert await elect(four, PREFERRED, 0) == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    await four.come(1)
    await in_sync(four, 2, 1)
    assert await elect(four, PREFERRED) == [(0, 0)]
    await four.led(T0, 1, 2, 1)
    assert await elect(four, PREFERRED, 7) == [(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_a_leader_is_elected_at_any_price(four: Any) -> None:
    """KIP-460: an unclean election elects a live replica where no in-sync replica is alive."""
    assert await elect(four, UNCLEAN, 0) == [(0, ErrorCode.ELECTION_NOT_NEEDED)]
    await four.go(2)
    await four.led(T0, 1, 1)
    await four.go(1)
    await four.led(T0, -1, 1)
    assert await elect(four, UNCLEAN, 0) == [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]
    await four.come(2)
    await four.until(lambda: bool(four.peers.metadata(2, T0)))
    assert await elect(four, UNCLEAN) == [(0, 0)]
    await four.led(T0, 2, 2)


async def test_who_is_not_the_controller_says_so(four: Any) -> None:
    """A broker that is not the controller answers NOT_CONTROLLER in the form of each request."""
    other = (await four.contend(3)).runtime
    extended = await other.create_partitions(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 2, None)])
    )
    assert extended.results[0].error_code == ErrorCode.NOT_CONTROLLER
    elected = await other.elect_leaders(ElectLeadersRequest(0, [TopicPartitions("t", [0])]))
    assert elected.error_code == ErrorCode.NOT_CONTROLLER
    assert elected.replica_election_results[0].partition_result[0].error_code == 41
    moved = await other.alter_reassignments(AlterPartitionReassignmentsRequest())
    assert moved.error_code == ErrorCode.NOT_CONTROLLER
    listed = await other.list_reassignments(ListPartitionReassignmentsRequest())
    assert listed.error_code == ErrorCode.NOT_CONTROLLER
