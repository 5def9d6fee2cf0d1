"""A producer that gives up early, against this project's brokers in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from tests.workloads.client.test_aio_txn import ask, read_to_the_end, transact
from workloads.client.common import Settings
from workloads.client.raw_txn import SEQUENCES, RawClient, RawWriter
from workloads.transactions import WORKLOAD


@pytest.fixture
async def bootstrap() -> AsyncIterator[str]:
    """Three brokers that know one another."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    settings = {
        name.replace(".", "_"): value
        for name, value in WORKLOAD.broker.items()
        if name.startswith(("trans", "offsets")) or name == "min.insync.replicas"
    }
    await asyncio.gather(*(world.add(number, **settings) for number in (1, 2, 3)))
    await world.ready()
    yield world.bootstrap
    await world.stop()


@pytest.fixture
async def clients(bootstrap: str) -> AsyncIterator[Any]:
    """Makes clients with a transactional id, and closes them."""
    made: list[RawClient] = []

    async def make(process: int, name: str, *, first_sequence: int = 0) -> RawClient:
        consumer = {**WORKLOAD.consumer, "fetch.wait.max.ms": "20", "retry.backoff.ms": "20"}
        topic = {"replication.factor": "3"}
        settings = {**WORKLOAD.producer, "delivery.timeout.ms": "300"}
        client = RawClient(
            Settings(bootstrap, process, settings, consumer, topic), first_sequence=first_sequence
        )
        made.append(client)
        assert (await ask(client, "init", [["init", name]])).type == "ok"
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))


async def test_what_is_committed_is_read_and_nothing_else(clients: Any, bootstrap: str) -> None:
    """Only committed records and offsets are read, before and after a takeover."""
    one = await clients(0, "mine")
    assert (await ask(one, "create-topic", [["create-topic", "t", 2]])).type == "ok"
    answer = await transact(one, ["send", "t-0", 0], ["send", "t-1", 0], ["send", "t-0", 1])
    assert (answer.type, answer.error) == ("ok", None)
    assert answer.value == [["send", "t-0", [0, 0]], ["send", "t-1", [0, 0]],
                            ["send", "t-0", [1, 1]]]  # fmt: skip
    aborted = await transact(one, ["send", "t-0", 2], ["abort"])
    assert (aborted.type, one.alive) == ("fail", True)
    assert await read_to_the_end(one, "t-0") == [0, 1]
    await one._transactor.begin()
    await one._transactor.send_offsets({"t-0": 2}, "group")
    await one._transactor.commit()
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id="group") as consumer:
        assert await consumer.committed(TopicPartition("t", 0)) == 2
    other = await clients(1, "mine")
    assert (await transact(other, ["send", "t-0", 3])).type == "ok"
    fenced = await transact(one, ["send", "t-1", 9])
    assert (fenced.type, one.alive) == ("fail", False)
    assert await read_to_the_end(other, "t-0") == [0, 1, 3]


async def test_a_batch_that_is_given_up_comes_late(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late batch of an aborted transaction in the same epoch is rejected (KIP-890)."""
    one = await clients(0, "mine")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    assert (await transact(one, ["send", "t-0", 0])).type == "ok"
    correct, told = RawWriter._send, []

    async def late(self: RawWriter, leader: int, key: str, data: bytes) -> Any:
        await asyncio.sleep(0.5)
        told.append(await correct(self, leader, key, data))
        return told[-1]

    monkeypatch.setattr(RawWriter, "_send", late)
    answer = await transact(one, ["send", "t-0", 1])
    assert (answer.type, answer.error, one.alive) == ("fail", "TimeoutError", False)
    await one.close()
    assert [error.__name__ for error, _ in told] == ["InvalidTxnState"]
    monkeypatch.undo()
    assert await read_to_the_end(await clients(1, "other"), "t-0") == [0]


async def test_a_new_id_may_begin_with_any_sequence_number(clients: Any) -> None:
    """Sequence numbers wrap to 0, and a new epoch begins with 0."""
    one = await clients(0, "mine", first_sequence=SEQUENCES - 1)
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    for value in range(3):
        assert (await transact(one, ["send", "t-0", value])).type == "ok"
    assert one._transactor._next == {"t-0": 2}
    two = await clients(1, "mine", first_sequence=SEQUENCES - 1)
    assert (await transact(two, ["send", "t-0", 3])).type == "ok"
    assert two._transactor._next == {"t-0": 1}
