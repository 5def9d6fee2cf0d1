"""Consume, transform, produce by aiokafka, against brokers in the test's event loop."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from model import transform
from model.op import MicroOp, Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.aio_transform import TransformingAioClient, prefixed_once
from workloads.client.common import Settings
from workloads.exactly_once import WORKLOAD

ROW: list[MicroOp] = [["poll"], ["transform", "output", 2], ["commit", "eos", None]]
HOW = {"instance": None, "assignor": "range", "commit": "sync"}


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterInLoop]:
    """Three brokers that know one another."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    settings = {
        name.replace(".", "_"): value
        for name, value in WORKLOAD.broker.items()
        if name.startswith(("trans", "group", "offsets")) or name == "min.insync.replicas"
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
    made: list[TransformingAioClient] = []

    def make(process: int) -> TransformingAioClient:
        # A transaction that waits must not look like one that hangs.
        longer = dict.fromkeys(("transaction.timeout.ms", "delivery.timeout.ms"), "20000")
        longer |= dict.fromkeys(("request.timeout.ms", "socket.timeout.ms"), "5000")
        longer["retry.backoff.ms"] = "20"
        consumer = {**WORKLOAD.consumer, "fetch.wait.max.ms": "20", "retry.backoff.ms": "20"}
        consumer |= {"heartbeat.interval.ms": "100", "max.poll.interval.ms": "1000"}
        topic = {"replication.factor": "3"}
        producer = {**WORKLOAD.producer, **longer}
        made.append(
            TransformingAioClient(Settings(cluster.bootstrap, process, producer, consumer, topic))
        )
        return made[-1]

    writer = make(0)
    for name in ("input", "output"):
        assert (await ask(writer, "create-topic", [["create-topic", name, 2]])).type == "ok"
    for key in ("input-0", "input-1"):
        sends = [["send", key, number + 5 * int(key[-1])] for number in range(5)]
        assert (await ask(writer, "send", sends)).type == "ok"
    yield make
    await asyncio.gather(*(client.close() for client in made))
    await asyncio.sleep(0)
    gc.collect()
    assert complaints == []


async def ask(client: TransformingAioClient, f: str, value: Any = None, index: int = 0) -> Op:
    op = Op(index=index, time_ns=0, process=0, type="invoke", f=f, value=value)
    return await client.invoke(op)


async def join(client: TransformingAioClient) -> None:
    assert (await ask(client, "subscribe", [["subscribe", "eos", ["input"], HOW]])).type == "ok"


async def work(client: TransformingAioClient, row: list[MicroOp], count: int) -> list[Op]:
    """Run transactions of the client until it has polled this number of records."""
    done: list[Op] = []
    async with asyncio.timeout(30):
        while count > 0:
            answer = await ask(client, "txn", row, index=len(done))
            polled = next(micro_op[1] for micro_op in answer.value if micro_op[0] == "poll")
            count -= sum(map(len, polled.values()))
            done.append(answer)
    return done


async def read(client: TransformingAioClient) -> list[int]:
    """Return the inputs of the committed output, up to its end."""
    keys = ["output-0", "output-1"]
    assert (await ask(client, "assign", keys)).type == "ok"
    found: list[int] = []
    async with asyncio.timeout(30):
        while keys:
            polled = await ask(client, "poll", [["poll"]])
            for pairs in polled.value[0][1].values():
                found += [transform.input_of(value) for _, value in pairs]
            if (await ask(client, "catch-up", [["catch-up", keys[0]]])).type == "ok":
                keys.pop(0)
    return sorted(found)


def told(ops: Iterable[Op], kind: str) -> list[MicroOp]:
    return [micro_op for op in ops for micro_op in op.value if micro_op[0] == kind]


async def test_each_input_comes_out_once(clients: Any) -> None:
    """Each input has one output, also if the first transaction was aborted."""
    member = clients(1)
    await join(member)
    aborted = await work(member, [*ROW, ["abort"]], 1)
    assert (aborted[-1].type, aborted[-1].error) == ("fail", "aborted")
    done = await work(member, ROW, 10)
    assert {op.type for op in done} == {"ok"}
    (assigned,) = told([*aborted, *done], "assigned")
    assert assigned[3] == {"input-0": 0, "input-1": 0}
    for op in done:
        sends = [micro_op for micro_op in op.value if micro_op[0] == "send"]
        assert all(key == f"output-{transform.input_of(v) % 2}" for _, key, (_, v) in sends)
    offsets = [places for _, _, places in told(done, "commit")]
    assert sorted(offsets, key=str) == [{"input-0": 5}, {"input-1": 5}]
    assert await read(clients(2)) == list(range(10))
    committed = await ask(member, "committed", [["committed", "eos", {"input-0": None}]])
    assert committed.value == [["committed", "eos", {"input-0": 5}]]


async def test_who_takes_a_partition_over_fences_who_had_it(clients: Any) -> None:
    """A member that takes over a partition fences its predecessor in the middle of a transaction.

    The predecessor's transaction has no effect.
    """
    first, second = clients(1), clients(2)
    await join(first)
    slow: list[MicroOp] = [*ROW[:2], ["delay", None, 5000], ROW[2]]
    begun = asyncio.create_task(work(first, slow, 1))
    await asyncio.sleep(1.0)
    await join(second)
    done = await work(second, ROW, 10)
    assert {(op.type, op.error) for op in done} == {("ok", None)}
    late = (await begun)[-1]
    assert late.type in ("fail", "info")
    assert late.error in ("ProducerFenced", "TimeoutError")
    assert not first.alive
    await first.close()
    assert await read(clients(3)) == list(range(10))


async def test_a_rebalance_waits_for_the_transaction_under_way(clients: Any) -> None:
    """A rebalance waits for the transaction in progress; then both members own a partition."""
    first, second = clients(1), clients(2)
    await join(first)
    slow: list[MicroOp] = [*ROW[:2], ["delay", None, 300], ROW[2]]
    begun = asyncio.create_task(work(first, slow, 1))
    await asyncio.sleep(0.5)
    await join(second)
    done = await begun
    assert done[-1].type == "ok"
    count = sum(len(pairs) for _, polled in told(done, "poll") for pairs in polled.values())
    assert count == 5
    owned: dict[int, list[str]] = {1: ["input-0", "input-1"], 2: []}
    async with asyncio.timeout(30):
        while sorted(owned[1] + owned[2]) != ["input-0", "input-1"] or not (owned[1] and owned[2]):
            for member, client in ((1, first), (2, second)):
                op = await ask(client, "txn", ROW)
                assert op.type == "ok"
                for _, _, _, places in told([op], "assigned"):
                    owned[member] = list(places)


def test_the_id_of_a_partition_has_one_prefix() -> None:
    """An id of group and partition begins with the prefix of names on brokers, and has no other."""
    assert prefixed_once("", "group-input-0") == "group-input-0"
    assert prefixed_once("run-1-", "run-1-group-run-1-input-0") == "run-1-group-input-0"
