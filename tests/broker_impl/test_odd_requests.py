"""Brokers survive unusual requests of clients, and late orders of controllers."""

import asyncio
import random
import struct
from typing import Any

import pytest

from bench.frames import values
from broker_impl.log.directory import CLEAN_SHUTDOWN
from broker_impl.node.peers import Peers
from broker_impl.wire import batch
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

API_VERSIONS = struct.pack(">hhih", 18, 0, 2, -1)


class OddClient:
    """A client that sends one request after the other, and reconnects when it is disconnected."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, key: int, version: int, body: bytes) -> None:
        """Send a request, then an ApiVersions whose response shows that the first is handled."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        header = struct.pack(">hhih", key, version, 1, -1)
        if values.is_flexible(key, version):
            header += b"\0"
        for frame in (header + body, API_VERSIONS):
            writer.write(struct.pack(">i", len(frame)) + frame)
        try:
            async with asyncio.timeout(10):
                number = 1
                while number != 2:
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    number = int.from_bytes((await reader.readexactly(size))[:4], "big")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def create(cluster: Any, name: str, partitions: int, replicas: int) -> None:
    brokers = [running.broker for running in cluster.brokers.values()]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)],
        timeout_ms=5000,
    )
    answer = await cluster.ask(brokers[0].view.controller_id, request, 5)
    assert [row.error_code for row in answer.topics] == [0], answer
    await cluster.until(lambda: all(name in broker.view.topics for broker in brokers))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_odd_values_harm_nobody(
    three: Any, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Well-formed requests with any values are answered, or their connection is closed.

    No handler fails unexpectedly, no broker ends, no request stays parked, and no bytes stay
    accounted for.
    """
    await create(three, "t", 2, 3)
    await create(three, "u", 1, 1)
    rng = random.Random(seed)
    clients = [OddClient(running.port) for running in three.brokers.values()]

    async def chat(client: OddClient, requests: list[tuple[int, int, bytes]]) -> None:
        for key, version, body in requests:
            await client.send(key, version, body)
        client.close()

    await asyncio.gather(
        *(chat(client, [values.request(rng) for _ in range(300)]) for client in clients)
    )
    brokers = [running.broker for running in three.brokers.values()]
    followers = len(brokers) - 1
    await three.until(lambda: all(len(b.waiting) <= followers for b in brokers))
    assert [b._failure for b in brokers] == [None, None, None]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    await three.until(lambda: all(b._server.bounds.request_bytes == 0 for b in brokers))


TOPICS = ("a", "b")


def partition_state(rng: random.Random, number: int) -> dict[str, Any]:
    """A random leadership that a controller could have written at some time."""
    leader = rng.choice([1, 1, 2, 2, -1])
    others = rng.choice([[], [1], [2], [1, 2]])
    return {
        "partition_index": number,
        "leader": leader,
        "leader_epoch": rng.randrange(12),
        "isr": sorted({leader, *others} - {-1}) or [1],
        "replicas": rng.choice([[1, 2], [2, 1], [2, 1], [2]]),
    }


def order(rng: random.Random, broker_epoch: int, controller_epoch: int) -> tuple[Any, int]:
    """A random LeaderAndIsr, StopReplica or UpdateMetadata, of any controller, early or late."""
    common: dict[str, Any] = {
        "controller_id": rng.choice([1, 2]),
        "controller_epoch": controller_epoch + rng.choice([-1, 0, 0, 0, 0, 1]),
        "broker_epoch": rng.choice([broker_epoch, broker_epoch, -1, broker_epoch - 1]),
    }
    topics = rng.sample(TOPICS, rng.choice([0, 1, 2]))
    states = {
        topic: [partition_state(rng, n) for n in range(rng.choice([1, 2]))] for topic in topics
    }
    kind = rng.randrange(6)
    if kind == 0:
        rows = [
            StopReplicaTopicState(
                topic_name=topic,
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=state["partition_index"],
                        leader_epoch=rng.choice([state["leader_epoch"], -1, -2]),
                        delete_partition=rng.random() < 0.5,
                    )
                    for state in partitions
                ],
            )
            for topic, partitions in states.items()
        ]
        return StopReplicaRequest(topic_states=rows, **common), 3
    if kind < 4:
        leaderships = [
            LeaderAndIsrTopicState(
                topic_name=topic,
                partition_states=[
                    LeaderAndIsrPartitionState(controller_epoch=1, partition_epoch=0, **state)
                    for state in partitions
                ],
            )
            for topic, partitions in states.items()
        ]
        return LeaderAndIsrRequest(topic_states=leaderships, **common), 4
    metadata = [
        UpdateMetadataTopicState(
            topic_name=topic,
            partition_states=[
                UpdateMetadataPartitionState(**state | {"leader": rng.choice([1, 2, -1, -2])})
                for state in partitions
            ],
        )
        for topic, partitions in states.items()
    ]
    brokers = [
        UpdateMetadataBroker(
            id=number,
            endpoints=[UpdateMetadataEndpoint(host="127.0.0.1", port=1, listener="REPLICATION")],
        )
        for number in rng.sample([1, 2, 3], rng.randint(0, 3))
    ]
    return UpdateMetadataRequest(topic_states=metadata, live_brokers=brokers, **common), 7


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_orders_in_any_order(
    cluster: Any, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Orders that are late, repeated or contradictory are applied or fenced.

    Meanwhile the broker keeps working: it appends where it leads, fetches where it follows, and
    can be shut down cleanly at the end.
    """
    running = await cluster.add(1)
    await cluster.ready()
    broker = running.broker
    rng = random.Random(seed)
    peers = Peers("odd", {})
    peers.update({1: ("127.0.0.1", broker._listening[1].port)})
    records = batch.encode_batch([batch.Record(b"k", b"v", 1)])
    for _ in range(400):
        if rng.random() < 0.5:
            message, version = order(
                rng, broker.replicas.broker_epoch, broker.replicas.controller_epoch
            )
        else:
            rows = [PartitionProduceData(index=rng.randrange(2), records=records)]
            version, message = (
                9,
                ProduceRequest(
                    transactional_id=None,
                    acks=rng.choice([1, -1]),
                    timeout_ms=rng.choice([0, 20]),
                    topic_data=[TopicProduceData(name=rng.choice(TOPICS), partition_data=rows)],
                ),
            )
        await peers.request(1, message, version, timeout_s=10)
    peers.close()
    assert broker._failure is None
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    await running.stop()
    assert running.disk.exists(CLEAN_SHUTDOWN)
