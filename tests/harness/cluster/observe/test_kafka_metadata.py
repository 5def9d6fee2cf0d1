"""A cluster's metadata by Kafka's protocol, from scripted brokers of both modes."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from broker_impl.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from broker_impl.wire.messages.find_coordinator_response import (
    Coordinator,
    FindCoordinatorResponse,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from harness.cluster.observe import kafka_metadata
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.metadata_view import Registration, ViewUnavailable
from harness.cluster.ports import HOST
from tests.harness.cluster.observe.fake_broker import Answer, FakeBroker

METADATA, FIND, MOVES, QUORUM = 3, 10, 46, 55
A, B, C = "broker-1", "broker-2", "broker-3"
ZOOKEEPER_MODE = {METADATA: range(9), FIND: range(4), MOVES: range(1)}
KRAFT_MODE = {**ZOOKEEPER_MODE, METADATA: range(13), FIND: range(7), QUORUM: range(3)}


class FakeCluster:
    """Three brokers whose answers differ only where a test changes one of them."""

    def __init__(self, versions: dict[int, range]) -> None:
        self.brokers = {number: FakeBroker(versions, self._answers(number)) for number in (1, 2, 3)}
        self.controllers = dict.fromkeys(self.brokers, 2)
        self.topics = {"x": [(1, 4, [1, 2, 3], [1, 2, 3])]}
        self.leader_of_one: dict[int, tuple[int, int, list[int], list[int]]] = {}
        """Another state of partition ``x-0`` in the metadata of one broker."""
        self.moves = dict.fromkeys(self.brokers, ListPartitionReassignmentsResponse())
        self.quorum = dict.fromkeys(self.brokers, quorum_of(3, 7))
        self.coordinator = 3

    @property
    def addresses(self) -> dict[str, Any]:
        return {f"broker-{number}": broker.address for number, broker in self.brokers.items()}

    def _answers(self, me: int) -> dict[int, Answer]:
        return {
            METADATA: partial(self._metadata, me),
            FIND: self._find,
            MOVES: lambda version, request: self.moves[me],
            QUORUM: lambda version, request: self.quorum[me],
        }

    def _metadata(self, me: int, version: int, request: Any) -> MetadataResponse:
        wanted = self.topics if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(number, *broker.address)
                for number, broker in self.brokers.items()
            ],
            controller_id=self.controllers[me],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        partition_row(at, *self.leader_of_one.get(me, row), version=version)
                        for at, row in enumerate(self.topics[name])
                    ],
                )
                if name in self.topics
                else MetadataResponseTopic(error_code=3, name=name)
                for name in wanted
            ],
        )

    def _find(self, version: int, request: Any) -> FindCoordinatorResponse:
        if version >= 4:
            [key] = request.coordinator_keys
            return FindCoordinatorResponse(coordinators=[Coordinator(key, self.coordinator)])
        return FindCoordinatorResponse(node_id=self.coordinator)


def partition_row(
    at: int, leader: int, epoch: int, replicas: list[int], isr: list[int], *, version: int
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=at,
        leader_id=leader,
        leader_epoch=epoch if version >= 7 else -1,
        replica_nodes=replicas,
        isr_nodes=isr,
    )


def quorum_of(leader: int, epoch: int) -> DescribeQuorumResponse:
    row = PartitionData(leader_id=leader, leader_epoch=epoch)
    return DescribeQuorumResponse(topics=[TopicData("__cluster_metadata", [row])])


async def started(versions: dict[int, range]) -> AsyncIterator[FakeCluster]:
    cluster = FakeCluster(versions)
    for broker in cluster.brokers.values():
        await broker.start()
    yield cluster
    for broker in cluster.brokers.values():
        broker.close()


@pytest.fixture
async def zookeeper_mode() -> AsyncIterator[FakeCluster]:
    async for cluster in started(ZOOKEEPER_MODE):
        yield cluster


@pytest.fixture
async def kraft() -> AsyncIterator[FakeCluster]:
    async for cluster in started(KRAFT_MODE):
        yield cluster


@pytest.fixture(params=[ZOOKEEPER_MODE, KRAFT_MODE], ids=["zookeeper", "kraft"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[FakeCluster]:
    async for cluster in started(request.param):
        yield cluster


async def test_controller_with_zookeeper(zookeeper_mode: FakeCluster) -> None:
    """With ZooKeeper, the controller is the one that most brokers name."""
    zookeeper_mode.controllers[1] = 1
    assert await KafkaView(zookeeper_mode.addresses).controller() == B


async def test_controller_of_kraft_is_the_quorum_leader(kraft: FakeCluster) -> None:
    """In KRaft the quorum's leader is the controller, with the highest epoch, by its own names."""
    kraft.quorum[1] = quorum_of(1, 6)
    assert await KafkaView(kraft.addresses).controller() == C
    named = KafkaView(kraft.addresses, quorum_node_of=lambda number: f"controller-{number}")
    assert await named.controller() == "controller-3"


async def test_separate_controllers_are_asked(kraft: FakeCluster) -> None:
    """The addresses of controllers are asked, too; their answer counts if its epoch is higher."""
    controller = FakeBroker({QUORUM: range(2)}, {QUORUM: lambda *_: quorum_of(101, 8)})
    await controller.start()
    view = KafkaView(
        kraft.addresses,
        controllers={"controller-101": controller.address},
        quorum_node_of=lambda number: f"controller-{number}",
    )
    assert await view.controller() == "controller-101"
    controller.close()


async def test_quorum_without_answer_is_unknown(kraft: FakeCluster) -> None:
    """If no broker answers about the quorum, the controller is unknown, and not absent."""

    def fail(*_: object) -> None:
        raise OSError

    for broker in kraft.brokers.values():
        broker.answers[QUORUM] = fail
    with pytest.raises(ViewUnavailable, match="quorum"):
        await KafkaView(kraft.addresses).controller()


async def test_live_and_registration(zookeeper_mode: FakeCluster) -> None:
    """Live brokers are those in the metadata; registrations come from another view, if any."""
    view = KafkaView(zookeeper_mode.addresses)
    assert await view.live() == (A, B, C)
    assert await view.registration(A) is None


async def test_registrations_of_another_view(zookeeper_mode: FakeCluster) -> None:
    """A view of ZooKeeper, if given, has the registrations; it is closed with this view."""

    class Registrations(KafkaView):
        closed = False

        async def registration(self, broker: str) -> Registration | None:
            return Registration(epoch=7, session_id=1) if broker == A else None

        async def close(self) -> None:
            self.closed = True

    other = Registrations({})
    view = KafkaView(zookeeper_mode.addresses, registrations=other)
    assert await view.registration(A) == Registration(7, 1)
    await view.close()
    assert other.closed


async def test_partition_is_asked_by_name(kraft: FakeCluster) -> None:
    """One partition is read without the others, and without creating its topic."""
    kraft.leader_of_one[2] = (3, 3, [1, 2, 3], [1, 3])
    view = KafkaView(kraft.addresses)
    partition = await view.partition("x-0")
    assert partition is not None
    assert (partition.leader, partition.leader_epoch) == (A, 4)
    assert partition.is_whole
    assert await view.leader("x-0") == A
    assert await view.partition("x-1") is None
    assert await view.partition("y-0") is None
    assert await view.leader("y-0") is None
    for _, request in kraft.brokers[1].asked_for(METADATA):
        assert request.topics is not None
        assert not request.allow_auto_topic_creation


async def test_old_releases_are_asked_for_all_topics(zookeeper_mode: FakeCluster) -> None:
    """Metadata before version 4 would create a topic that it names, so it names none."""
    for broker in zookeeper_mode.brokers.values():
        broker.versions = {18: range(1), METADATA: range(3)}
    view = KafkaView(zookeeper_mode.addresses)
    partition = await view.partition("x-0")
    assert partition is not None
    assert (partition.leader, partition.leader_epoch) == (A, -1)
    [(version, request)] = zookeeper_mode.brokers[1].asked_for(METADATA)
    assert (version, request.topics) == (2, None)


async def test_moving_partition(zookeeper_mode: FakeCluster) -> None:
    """The controller's reassignments are part of a partition, which is not whole meanwhile."""
    row = OngoingPartitionReassignment(0, [1, 2, 3], [3], [2])
    zookeeper_mode.moves[2] = ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment("x", [row])]
    )
    [partition] = await KafkaView(zookeeper_mode.addresses).partitions()
    assert (partition.adding, partition.removing) == ((C,), (B,))
    assert not partition.is_whole
    assert zookeeper_mode.brokers[1].asked_for(MOVES) == []


async def test_refused_reassignments_are_none(zookeeper_mode: FakeCluster) -> None:
    """A broker that is no controller anymore refuses: the partition is read without moves."""
    zookeeper_mode.moves[2] = ListPartitionReassignmentsResponse(error_code=41)
    [partition] = await KafkaView(zookeeper_mode.addresses).partitions()
    assert not partition.is_moving


async def test_coordinator(cluster: FakeCluster) -> None:
    """FindCoordinator is asked in every version, and only if the internal topic exists."""
    view = KafkaView(cluster.addresses)
    assert await view.coordinator("group", "g") is None
    assert all(broker.asked_for(FIND) == [] for broker in cluster.brokers.values())
    cluster.topics["__consumer_offsets"] = [(3, 0, [3], [3])]
    assert await view.coordinator("group", "g") == C
    assert await view.coordinator("transaction", "t") is None
    cluster.topics["__transaction_state"] = [(3, 0, [3], [3])]
    cluster.coordinator = 2
    assert await view.coordinator("transaction", "t") == B
    asked = [one for _, one in cluster.brokers[1].asked_for(FIND)]
    assert [one.key_type for one in asked] == [0, 1]
    assert [one.key or one.coordinator_keys[0] for one in asked] == ["g", "t"]


async def test_stopped_brokers_are_ignored(zookeeper_mode: FakeCluster) -> None:
    """Brokers that refuse connections do not matter while one answers."""
    view = KafkaView(zookeeper_mode.addresses)
    for number in (1, 2):
        zookeeper_mode.brokers[number].close()
    assert await view.controller() == B
    zookeeper_mode.brokers[3].close()
    with pytest.raises(ViewUnavailable, match=HOST):
        await view.live()


async def test_frozen_broker_delays_little(
    zookeeper_mode: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When most brokers have ended with an answer or not, a frozen one has a short time left."""
    monkeypatch.setattr(kafka_metadata, "GRACE_S", 0.01)
    monkeypatch.setattr(kafka_metadata, "READ_TIMEOUT_S", 60)
    zookeeper_mode.brokers[1].close()
    zookeeper_mode.brokers[3].frozen = True
    async with asyncio.timeout(30):
        assert await KafkaView(zookeeper_mode.addresses).controller() == B


async def test_bootstrap_addresses(zookeeper_mode: FakeCluster) -> None:
    """From bootstrap addresses, all listed brokers are found and asked from then on.

    When none of them answers anymore, the bootstrap addresses are used again.
    """
    seed = zookeeper_mode.brokers[2].address
    view = KafkaView([seed])
    assert await view.live() == (A, B, C)
    zookeeper_mode.controllers[1] = 1
    assert await view.controller() == B
    assert len(zookeeper_mode.brokers[1].asked_for(METADATA)) == 1
    for broker in zookeeper_mode.brokers.values():
        broker.close()
    with pytest.raises(ViewUnavailable):
        await view.live()
    with pytest.raises(ViewUnavailable, match=rf"at {seed}$"):
        await view.live()
    await zookeeper_mode.brokers[2].start()
    assert await view.controller() == B
