"""Transactions by librdkafka, against this project's brokers in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from model.op import MicroOp, Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.common import Settings
from workloads.client.confluent_txn import TransactionalConfluentClient
from workloads.transactions import WORKLOAD

pytestmark = pytest.mark.slow


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterInLoop]:
    """Three brokers that know one another."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    settings = {
        name.replace(".", "_"): value
        for name, value in WORKLOAD.broker.items()
        if name.startswith("trans") or name == "min.insync.replicas"
    }
    await asyncio.gather(*(world.add(number, **settings) for number in (1, 2, 3)))
    await world.ready()
    yield world
    await world.stop()


@pytest.fixture
async def clients(cluster: ClusterInLoop) -> AsyncIterator[Any]:
    """Makes clients, and closes them."""
    made: list[TransactionalConfluentClient] = []

    async def make(process: int, name: str | None = None, **producer: str) -> Any:
        settings = {**WORKLOAD.producer}
        settings |= {key.replace("_", "."): value for key, value in producer.items()}
        topic = {"replication.factor": "3"}
        client = TransactionalConfluentClient(
            Settings(cluster.bootstrap, process, settings, WORKLOAD.consumer, topic)
        )
        made.append(client)
        if name is not None:
            assert (await ask(client, "init", [["init", name]])).type == "ok"
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))


async def ask(client: TransactionalConfluentClient, f: str, value: Any = None) -> Op:
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=value))


async def transact(client: TransactionalConfluentClient, *row: MicroOp) -> Op:
    return await ask(client, "txn", list(row))


async def read_to_the_end(client: TransactionalConfluentClient, key: str) -> list[int]:
    """Return the values that a read_committed reader gets, up to the high watermark."""
    assert (await ask(client, "assign", [key])).type == "ok"
    values: list[int] = []
    async with asyncio.timeout(20):
        while True:
            polled = await ask(client, "poll", [["poll"]])
            values += [value for _, value in polled.value[0][1].get(key, [])]
            if (await ask(client, "catch-up", [["catch-up", key]])).type == "ok":
                return values


async def test_transactions_from_end_to_end(clients: Any) -> None:
    """Committed records are read once and aborted ones never, up to the end of the log.

    What a transaction has polled before it was aborted is polled again.
    """
    one = await clients(0, "mine")
    assert (await ask(one, "create-topic", [["create-topic", "t", 2]])).type == "ok"
    answer = await transact(one, ["send", "t-0", 0], ["send", "t-1", 0], ["send", "t-0", 1])
    assert (answer.type, one.alive) == ("ok", True)
    await ask(one, "assign", ["t-0"])
    async with asyncio.timeout(20):
        answer = await transact(one, ["poll"], ["send", "t-0", 2], ["abort"])
        while answer.value[0] != ["poll", {"t-0": [[0, 0], [1, 1]]}]:
            assert answer.value[0] == ["poll", {}]
            answer = await transact(one, ["poll"], ["send", "t-0", 2], ["abort"])
        assert (answer.type, answer.error, one.alive) == ("fail", "aborted", True)
        answer = await transact(one, ["poll"], ["send", "t-1", 3])
        while answer.value[0] == ["poll", {}]:  # it is fetching them again
            answer = await transact(one, ["poll"], ["send", "t-1", 3])
    assert answer.type == "ok"
    assert answer.value[0] == ["poll", {"t-0": [[0, 0], [1, 1]]}]
    assert await read_to_the_end(await clients(1), "t-0") == [0, 1]
    one_key = await read_to_the_end(await clients(2), "t-1")
    assert one_key[0] == 0
    assert set(one_key[1:]) == {3}
    marks = await ask(one, "watermarks", [["watermarks", "t-1"]])
    (_, _, places) = marks.value[0]
    assert places["start"] == 0
    assert places["stable"] == places["high"] > 3


async def test_a_successor_fences(clients: Any) -> None:
    """A process that takes over a transactional id fences the former one and aborts its records."""
    one = await clients(0, "ours")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    assert (await transact(one, ["send", "t-0", 0])).type == "ok"
    begun = asyncio.create_task(transact(one, ["send", "t-0", 1], ["delay", None, 900]))
    await asyncio.sleep(0.3)
    other = await clients(1, "ours")
    answer = await begun
    assert (answer.type, answer.error) == ("info", "_FENCED")
    assert not one.alive
    assert (await transact(other, ["send", "t-0", 2])).type == "ok"
    assert await read_to_the_end(await clients(2), "t-0") == [0, 2]


async def test_an_id_that_nobody_gives_is_in_doubt(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ``init`` without a response is in doubt: librdkafka does not say how far it came."""
    monkeypatch.setattr("workloads.client.confluent_txn.INIT_TIMEOUT_S", 0.2)
    one = TransactionalConfluentClient(
        Settings(
            "127.0.0.1:9", 0, WORKLOAD.producer, WORKLOAD.consumer, {"replication.factor": "3"}
        )
    )
    answer = await ask(one, "init", [["init", "mine"]])
    assert (answer.type, answer.error) == ("info", "_TIMED_OUT")
    await one.close()
