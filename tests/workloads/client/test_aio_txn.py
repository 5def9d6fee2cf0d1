"""Transactions by aiokafka, against this project's brokers in the test's event loop."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NotLeaderForPartitionError
from aiokafka.protocol.produce import ProduceRequest

from model.op import MicroOp, Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.aio_txn import TransactionalAioClient
from workloads.client.common import Settings
from workloads.transactions import WORKLOAD


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
    """Makes clients and closes them; then no task of theirs has an unretrieved error."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: complaints.append(context["message"])
    )
    made: list[TransactionalAioClient] = []

    async def make(process: int, name: str | None = None, **producer: str) -> Any:
        settings = {**WORKLOAD.producer, "retry.backoff.ms": "20"}
        settings |= {key.replace("_", "."): value for key, value in producer.items()}
        consumer = {**WORKLOAD.consumer, "fetch.wait.max.ms": "20", "retry.backoff.ms": "20"}
        topic = {"replication.factor": "3"}
        client = TransactionalAioClient(
            Settings(cluster.bootstrap, process, settings, consumer, topic)
        )
        made.append(client)
        if name is not None:
            assert (await ask(client, "init", [["init", name]])).type == "ok"
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))
    await asyncio.sleep(0)
    gc.collect()
    assert complaints == []


async def ask(client: TransactionalAioClient, f: str, value: Any = None) -> Op:
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=value))


async def transact(client: TransactionalAioClient, *row: MicroOp) -> Op:
    return await ask(client, "txn", list(row))


async def read_to_the_end(client: TransactionalAioClient, key: str) -> list[int]:
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
    assert answer.value == [["send", "t-0", [0, 0]], ["send", "t-1", [0, 0]],
                            ["send", "t-0", [1, 1]]]  # fmt: skip
    await ask(one, "assign", ["t-0"])
    async with asyncio.timeout(20):
        answer = await transact(one, ["poll"], ["send", "t-0", 2], ["abort"])
        while answer.value[0] != ["poll", {"t-0": [[0, 0], [1, 1]]}]:
            assert answer.value[0] == ["poll", {}]
            answer = await transact(one, ["poll"], ["send", "t-0", 2], ["abort"])
    assert (answer.type, answer.error, one.alive) == ("fail", "aborted", True)
    sent = 0
    async with asyncio.timeout(20):
        while answer.value[0] == ["poll", {}] or not sent:  # a poll does not wait for long
            answer = await transact(one, ["poll"], ["send", "t-1", 3])
            assert answer.type == "ok"
            sent += 1
    assert answer.value[0] == ["poll", {"t-0": [[0, 0], [1, 1]]}]
    assert await read_to_the_end(await clients(1), "t-0") == [0, 1]
    assert await read_to_the_end(await clients(2), "t-1") == [0, *[3] * sent]


async def test_a_successor_fences(clients: Any) -> None:
    """A process that takes over a transactional id fences the former one and aborts its records."""
    one = await clients(0, "ours")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    assert (await transact(one, ["send", "t-0", 0])).type == "ok"
    begun = asyncio.create_task(transact(one, ["send", "t-0", 1], ["delay", None, 600]))
    await asyncio.sleep(0.3)
    other = await clients(1)
    took_over = await ask(other, "init", [["init", "ours"]])
    assert took_over.type == "ok"
    (_, _, (producer_id, epoch)) = took_over.value[0]
    assert epoch >= 1
    assert producer_id >= 0
    answer = await begun
    assert (answer.type, answer.error) == ("info", "ProducerFenced")
    assert not one.alive
    assert (await transact(other, ["send", "t-0", 2])).type == "ok"
    assert await read_to_the_end(await clients(2), "t-0") == [0, 2]


async def test_a_fenced_send_is_a_failure(clients: Any) -> None:
    """A fenced send is ``fail``, because no commit was requested."""
    one = await clients(0, "ours")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    assert (await transact(one, ["send", "t-0", 0])).type == "ok"
    await clients(1, "ours")
    answer = await transact(one, ["send", "t-0", 1])
    assert (answer.type, answer.error) == ("fail", "ProducerFenced")
    assert answer.value == [["send", "t-0", 1]]
    assert not one.alive


async def test_a_commit_without_an_answer_is_in_doubt(clients: Any, cluster: ClusterInLoop) -> None:
    """A commit without a response is in doubt before aiokafka repeats it, and ends the process."""
    one = await clients(0, "mine", request_timeout_ms="500")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    assert (await transact(one, ["send", "t-0", 0])).type == "ok"
    begun = asyncio.create_task(transact(one, ["send", "t-0", 1], ["delay", None, 300]))
    await asyncio.sleep(0.2)
    client = one._transactor._producer.client
    client.send = _never
    answer = await begun
    assert (answer.type, answer.error) == ("info", "TimeoutError")
    assert not one.alive


def hold_up(producer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the producer's requests fail with a retriable error after 0.4 s."""
    send = producer.client.send

    async def slow(node: int, request: Any, **options: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return await send(node, request, **options)
        await asyncio.sleep(0.4)
        raise NotLeaderForPartitionError

    monkeypatch.setattr(producer.client, "send", slow)


async def test_a_producer_ends_with_all_that_it_has_under_way(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing a producer ends its requests to all brokers."""
    one = await clients(0, "mine")
    await ask(one, "create-topic", [["create-topic", "t", 3]])
    everywhere = [["send", f"t-{number}", 0] for number in range(3)]
    assert (await transact(one, *everywhere)).type == "ok"
    hold_up(one._transactor._producer, monkeypatch)
    begun = asyncio.create_task(transact(one, *everywhere))
    await asyncio.sleep(0.1)
    begun.cancel()
    await one.close()
    await asyncio.sleep(0.5)


async def test_what_a_dead_sender_leaves_under_way_is_ended(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that a failed sender has left in flight are ended."""
    one = await clients(0, "ours")
    await ask(one, "create-topic", [["create-topic", "t", 2]])
    await transact(one, ["send", "t-0", 0], ["send", "t-1", 0])
    producer = one._transactor._producer
    hold_up(producer, monkeypatch)
    begun = asyncio.create_task(transact(one, ["send", "t-0", 1]))
    await asyncio.sleep(0.1)
    await clients(1, "ours")
    producer._txn_manager.maybe_add_partition_to_txn(TopicPartition("t", 1))
    answer = await begun
    assert (answer.type, answer.error) == ("fail", "ProducerFenced")
    await one.close()
    await asyncio.sleep(0.5)


async def _never(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


async def test_who_finds_nobody_gets_no_id(clients: Any) -> None:
    """Without a cluster ``init`` certainly fails, and may be repeated."""
    one = TransactionalAioClient(
        Settings(
            "127.0.0.1:9", 0, WORKLOAD.producer, WORKLOAD.consumer, {"replication.factor": "3"}
        )
    )
    for _ in range(2):
        answer = await ask(one, "init", [["init", "mine"]])
        assert (answer.type, answer.error) == ("fail", "KafkaConnectionError")
        assert answer.value == [["init", "mine", None]]
    assert one.alive
    await one.close()


async def test_watermarks_show_an_open_transaction(clients: Any) -> None:
    """The last stable offset stays at the start of an open transaction."""
    one = await clients(0, "mine", transaction_timeout_ms="60000")
    await ask(one, "create-topic", [["create-topic", "t", 1]])
    await transact(one, ["send", "t-0", 0])
    begun = asyncio.create_task(transact(one, ["send", "t-0", 1], ["delay", None, 600]))
    await asyncio.sleep(0.3)
    other = await clients(1)
    answer = await ask(other, "watermarks", [["watermarks", "t-0"]])
    assert (answer.type, answer.value) == (
        "ok",
        [["watermarks", "t-0", {"start": 0, "stable": 2, "high": 3}]],
    )
    assert (await begun).type == "ok"
