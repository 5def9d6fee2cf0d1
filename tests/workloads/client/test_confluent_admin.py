"""librdkafka's admin requests, against this project's brokers in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from model.op import Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.common import Settings
from workloads.client.confluent import ConfluentClient
from workloads.idempotent import WORKLOAD

pytestmark = pytest.mark.slow


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterInLoop]:
    """Three brokers that know one another."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    await asyncio.gather(*(world.add(number, min_insync_replicas="2") for number in (1, 2, 3)))
    await world.ready()
    yield world
    await world.stop()


@pytest.fixture
async def clients(cluster: ClusterInLoop) -> AsyncIterator[Any]:
    """Makes clients, and closes them."""
    made: list[ConfluentClient] = []

    def make(process: int) -> ConfluentClient:
        topic = {"replication.factor": "3"}
        settings = WORKLOAD.producer, WORKLOAD.consumer
        made.append(ConfluentClient(Settings(cluster.bootstrap, process, *settings, topic)))
        return made[-1]

    yield make
    await asyncio.gather(*(client.close() for client in made))


async def ask(client: ConfluentClient, f: str, *value: Any) -> Op:
    asked = list(value) or None
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=asked))


async def read(client: ConfluentClient, key: str) -> list[list[int]]:
    """Return the first records that a poll returns."""
    await ask(client, "assign", key)
    async with asyncio.timeout(20):
        while True:
            polled = await ask(client, "poll", ["poll"])
            if polled.value[0][1]:
                records: list[list[int]] = polled.value[0][1][key]
                return records


async def test_records_and_topics_are_deleted(clients: Any) -> None:
    """DeleteRecords reports the start of the log, and is in doubt if it is rejected.

    A recreated topic has other partition names in the history.
    """
    one = clients(0)
    await ask(one, "create-topic", ["create-topic", "t", 1])
    await ask(one, "send", *(["send", "t-0", value] for value in range(3)))
    deleted = await ask(one, "delete-records", ["delete-records", "t-0", 2])
    assert (deleted.type, deleted.value) == ("ok", [["delete-records", "t-0", 2, 2]])
    beyond = await ask(one, "delete-records", ["delete-records", "t-0", 9])
    assert (beyond.type, beyond.error) == ("info", "OFFSET_OUT_OF_RANGE")
    assert await read(one, "t-0") == [[2, 2]]
    assert (await ask(one, "delete-topic", ["delete-topic", "t"])).type == "ok"
    assert (await ask(one, "delete-topic", ["delete-topic", "t"])).type == "ok", "it is gone"
    other = clients(1)
    assert (await ask(other, "create-topic", ["create-topic", "t~1", 1])).type == "ok"
    sent = await ask(other, "send", ["send", "t~1-0", 7])
    assert sent.value == [["send", "t~1-0", [0, 7]]]
    assert await read(other, "t~1-0") == [[0, 7]]


async def test_a_topic_gets_other_settings(clients: Any) -> None:
    """alter-topic changes the settings of an existing topic."""
    one = clients(0)
    nobody = await ask(one, "alter-topic", ["compacted", "nobody"])
    assert (nobody.type, nobody.error) == ("info", "UNKNOWN_TOPIC_OR_PART")
    await ask(one, "create-topic", ["create-topic", "t", 1])
    assert (await ask(one, "alter-topic", ["compacted", "t"])).type == "ok"
