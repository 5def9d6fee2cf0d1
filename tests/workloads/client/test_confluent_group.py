"""Groups by librdkafka, against this project's brokers in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from model.op import Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client import confluent_group
from workloads.client.common import Settings
from workloads.client.confluent_group import GroupConfluentClient
from workloads.offsets import WORKLOAD

pytestmark = pytest.mark.slow


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterInLoop]:
    """Three brokers that coordinate groups without delay."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    settings = {
        "group_initial_rebalance_delay_ms": "0",
        "group_min_session_timeout_ms": "100",
        "offsets_topic_num_partitions": "2",
    }
    await asyncio.gather(*(world.add(number, **settings) for number in (1, 2, 3)))
    await world.ready()
    yield world
    await world.stop()


@pytest.fixture
async def clients(cluster: ClusterInLoop) -> AsyncIterator[Any]:
    """Makes clients, and closes them."""
    made: list[GroupConfluentClient] = []

    def make(process: int, **consumer: str) -> GroupConfluentClient:
        settings = {name.replace("_", "."): value for name, value in consumer.items()}
        asked = {**WORKLOAD.consumer, "heartbeat.interval.ms": "50", **settings}
        topic = {"replication.factor": "3"}
        client = GroupConfluentClient(
            Settings(cluster.bootstrap, process, WORKLOAD.producer, asked, topic)
        )
        made.append(client)
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))


async def ask(client: GroupConfluentClient, f: str, *value: Any) -> Op:
    op = Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=list(value))
    return await client.invoke(op)


async def join(client: GroupConfluentClient, commit: str = "sync", **how: Any) -> None:
    options = {"instance": None, "assignor": "range", "commit": commit, **how}
    assert (await ask(client, "subscribe", ["subscribe", "g", ["a"], options])).type == "ok"


async def poll_until(
    client: GroupConfluentClient, kind: str, others: tuple[Any, ...] = ()
) -> list[Any]:
    """Poll, with the other clients, until such a micro-operation comes; return all of them."""
    told: list[Any] = []
    async with asyncio.timeout(20):
        while True:
            polled, *_ = await asyncio.gather(
                ask(client, "poll", ["poll"]), *(ask(other, "poll", ["poll"]) for other in others)
            )
            assert polled.type == "ok"
            told += [each for each in polled.value if each != ["poll", {}]]
            if any(each[0] == kind for each in told):
                return told


async def written(client: GroupConfluentClient, *sends: tuple[str, int]) -> None:
    await ask(client, "create-topic", ["create-topic", "a", 2])
    sent = await ask(client, "send", *(["send", key, value] for key, value in sends))
    assert sent.type == "ok"


async def test_outsiders_commit_and_ask(clients: Any) -> None:
    """An offset that one client commits is what another fetches; without a commit there is none."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    for place, mode in (([7, 1234567890], "sync"), (8, "async"), ([9, 5], "async")):
        done = await ask(one, "commit", ["commit", "g", {"a-0": place}, mode])
        assert (done.type, done.value) == ("ok", [["commit", "g", {"a-0": place}, mode]])
        told = await ask(other, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
        assert (told.type, told.value) == ("ok", [["committed", "g", {"a-0": place, "a-1": None}]])


@pytest.mark.parametrize("assignor", confluent_group.ASSIGNORS)
async def test_members_share_what_there_is(clients: Any, assignor: str) -> None:
    """The first member owns everything until the second joins; a cooperative one keeps the rest."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0), ("a-1", 1), ("a-1", 2))
    await ask(one, "commit", ["commit", "g", {"a-1": 1}, "sync"])
    await join(one, assignor=assignor)
    told = await poll_until(one, "poll")
    assert told[0] == ["assigned", "g", None, {"a-0": None, "a-1": None}]
    assert all(each[0] == "poll" for each in told[1:])
    await join(other, assignor=assignor)
    changes = await poll_until(one, "revoked", (other,))
    (gone,) = [each[3] for each in changes if each[0] == "revoked"]
    assert len(gone) == (1 if assignor == "cooperative-sticky" else 2)


async def test_a_listener_commits_what_it_has_read(clients: Any) -> None:
    """A listener commits before its partitions are revoked; the operation reports that order."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0), ("a-0", 1))
    await join(one, commit="listener")
    await poll_until(one, "poll")
    await join(other, commit="listener")
    told = await poll_until(one, "revoked", (other,))
    kinds = [each[0] for each in told]
    committed = told[kinds.index("commit")]
    assert committed == ["commit", "g", {"a-0": 2}, "listener"]
    assert kinds.index("commit") < kinds.index("revoked")
    asked = await ask(other, "committed", ["committed", "g", {"a-0": None}])
    assert asked.value == [["committed", "g", {"a-0": 2}]]


async def test_a_leave_is_heard_at_once(clients: Any) -> None:
    """After a leave the other member gets everything long before a session would expire."""
    one, other = clients(0, session_timeout_ms="30000", max_poll_interval_ms="30000"), clients(1)
    await written(one, ("a-0", 0))
    await join(one)
    await poll_until(one, "assigned")
    await join(other)
    await poll_until(other, "assigned", (one,))
    assert (await ask(one, "leave", ["leave", "g"])).type == "ok"
    assert not one.alive
    async with asyncio.timeout(5):
        told = await poll_until(other, "assigned")
    assert ["assigned", "g", None, {"a-0": None, "a-1": None}] in told


class Refused:
    """A consumer whose commits are rejected."""

    def __init__(self, _: Any) -> None: ...

    def commit(self, **_: Any) -> list[Any]:
        [place] = [type("Place", (), {"error": KafkaError(KafkaError.ILLEGAL_GENERATION)})]
        return [place]

    def close(self) -> None: ...


@pytest.mark.parametrize(("first_attempt_s", "kind"), [(5.0, "fail"), (0.0, "info")])
async def test_a_late_refusal_is_no_certainty(
    clients: Any, monkeypatch: pytest.MonkeyPatch, first_attempt_s: float, kind: str
) -> None:
    """A late rejection is in doubt, because an earlier attempt may have succeeded."""
    monkeypatch.setattr("workloads.client.confluent_group.Consumer", Refused)
    monkeypatch.setattr(confluent_group, "FIRST_ATTEMPT_S", first_attempt_s)
    done = await ask(clients(0), "commit", ["commit", "g", {"a-0": 1}, "sync"])
    assert (done.type, done.error) == (kind, "ILLEGAL_GENERATION")


async def test_what_was_revoked_is_not_committed(clients: Any) -> None:
    """A revocation that no operation has reported yet keeps a commit of the partition back."""
    one = clients(0)
    await written(one, ("a-0", 0), ("a-1", 1))
    await join(one)
    await poll_until(one, "poll")
    feed = one._member._feed
    feed.read("a-0", [[0, 0]])
    feed.gone("revoked", None, ["a-0"])
    refused = await ask(one, "commit", ["commit", "g", {"a-0": 1, "a-1": 1}, "sync"])
    assert (refused.type, refused.error) == ("fail", "revoked")
    assert (await ask(one, "commit", ["commit", "g", {"a-1": 1}, "sync"])).type == "ok"
    told = await ask(one, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
    assert told.value == [["committed", "g", {"a-0": None, "a-1": 1}]]
