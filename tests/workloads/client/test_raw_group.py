"""Commits in and outside of transactions by one process, against this project's brokers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from tests.workloads.client.test_aio_group import ask
from tests.workloads.client.test_aio_txn import transact
from workloads.client.common import Settings
from workloads.client.raw_group import RawGroupClient
from workloads.offsets import WORKLOAD


@pytest.fixture
async def client() -> AsyncIterator[RawGroupClient]:
    """A client with a transactional id and a topic whose offsets it can commit."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    settings = {
        "transaction_state_log_num_partitions": "2",
        "offsets_topic_num_partitions": "2",
        "group_initial_rebalance_delay_ms": "0",
        "group_min_session_timeout_ms": "100",
    }
    await asyncio.gather(*(world.add(number, **settings) for number in (1, 2, 3)))
    await world.ready()
    consumer = {**WORKLOAD.consumer, "retry.backoff.ms": "20"}
    client = RawGroupClient(
        Settings(world.bootstrap, 0, WORKLOAD.producer, consumer, {"replication.factor": "3"})
    )
    assert (await ask(client, "create-topic", ["create-topic", "a", 2])).type == "ok"
    assert (await ask(client, "init", ["init", "mine"])).type == "ok"
    yield client
    await client.close()
    await world.stop()


async def test_the_later_record_counts(client: RawGroupClient) -> None:
    """A plain commit in the middle of a transaction takes effect, as the later record.

    It does not wait for the end of the transaction.
    """
    places = {"a-0": [5, 77], "a-1": 3}
    plainly = ["commit-plainly", "g", {"a-0": [6, 78]}]
    answer = await transact(client, ["commit", "g", places], plainly)
    assert (answer.type, answer.error) == ("ok", None)
    assert answer.value == [["commit", "g", places], plainly]
    assert await committed(client) == {"a-0": [6, 78], "a-1": 3}
    aborted = await transact(
        client, ["commit", "g", {"a-0": 8}], ["commit-plainly", "g", {"a-1": 9}], ["abort"]
    )
    assert (aborted.type, client.alive) == ("info", False)
    assert await committed(client) == {"a-0": [6, 78], "a-1": 9}


async def test_a_refused_commit_ends_the_transaction(client: RawGroupClient) -> None:
    """A plain commit that the coordinator rejects aborts the transaction."""
    how = {"instance": None, "assignor": "range", "commit": "sync"}
    other = RawGroupClient(
        Settings(
            client._common["bootstrap_servers"],
            1,
            WORKLOAD.producer,
            WORKLOAD.consumer,
            {"replication.factor": "3"},
        )
    )
    assert (await ask(other, "subscribe", ["subscribe", "g", ["a"], how])).type == "ok"
    async with asyncio.timeout(20):
        while (await ask(other, "poll", ["poll"])).value[0][0] != "assigned":
            pass
    answer = await transact(client, ["commit-plainly", "g", {"a-0": 6}])
    assert (answer.type, answer.error, client.alive) == ("fail", "UnknownMemberIdError", True)
    await other.close()


async def committed(client: Any) -> Any:
    """Return the committed offsets after the transaction's marker was written.

    The response to EndTxn does not wait for the marker.
    """
    await asyncio.sleep(0.2)
    told = await ask(client, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
    assert told.type == "ok", told
    return told.value[0][2]
