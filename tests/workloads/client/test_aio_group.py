"""Groups by aiokafka, against this project's brokers in the test's event loop."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from model.op import Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.aio_group import REFUSED_S, GroupAioClient, Member
from workloads.client.common import Settings, as_committed
from workloads.client.membership import Feed
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
    """Makes clients and closes them; then none has a running task or an unretrieved error."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: complaints.append(context["message"])
    )
    made: list[GroupAioClient] = []

    def make(process: int, **consumer: str) -> GroupAioClient:
        settings = {name.replace("_", "."): value for name, value in consumer.items()}
        asked = {**WORKLOAD.consumer, "heartbeat.interval.ms": "50", **settings}
        topic = {"replication.factor": "3"}
        client = GroupAioClient(
            Settings(cluster.bootstrap, process, WORKLOAD.producer, asked, topic)
        )
        made.append(client)
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))
    await asyncio.sleep(0)
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
    assert [
        each.__qualname__ for each in coroutines if "aiokafka" in each.cr_code.co_filename
    ] == []
    gc.collect()
    assert complaints == []


async def ask(client: GroupAioClient, f: str, *value: Any) -> Op:
    op = Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=list(value))
    return await client.invoke(op)


async def join(client: GroupAioClient, commit: str = "sync", **how: Any) -> None:
    options = {"instance": None, "assignor": "range", "commit": commit, **how}
    assert (await ask(client, "subscribe", ["subscribe", "g", ["a"], options])).type == "ok"


async def poll_until(client: GroupAioClient, kind: str, others: tuple[Any, ...] = ()) -> list[Any]:
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


async def written(client: GroupAioClient, *sends: tuple[str, int]) -> None:
    await ask(client, "create-topic", ["create-topic", "a", 2])
    sent = await ask(client, "send", *(["send", key, value] for key, value in sends))
    assert sent.type == "ok"


async def test_outsiders_commit_and_ask(clients: Any) -> None:
    """An offset that one client commits is what another fetches; without a commit there is none."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    done = await ask(one, "commit", ["commit", "g", {"a-0": 7}, "sync"])
    assert (done.type, done.value) == ("ok", [["commit", "g", {"a-0": 7}, "sync"]])
    told = await ask(other, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
    assert (told.type, told.value) == ("ok", [["committed", "g", {"a-0": 7, "a-1": None}]])
    none = await ask(other, "committed", ["committed", "elsewhere", {"a-0": None}])
    assert none.value == [["committed", "elsewhere", {"a-0": None}]]


async def test_metadata_comes_back(clients: Any) -> None:
    """Metadata is returned as it was committed."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    places: dict[str, int | list[int]] = {"a-0": [7, 1234567890], "a-1": 3}
    done = await ask(one, "commit", ["commit", "g", places, "sync"])
    assert (done.type, done.value) == ("ok", [["commit", "g", places, "sync"]])
    told = await ask(other, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
    assert (told.type, told.value) == ("ok", [["committed", "g", places]])


@pytest.mark.parametrize(
    ("metadata", "told"),
    [("", 7), (None, 7), ("12", [7, 12]), ("later", [7, -1]), ("9" * 19, [7, -1]), ("²", [7, -1])],
)
def test_metadata_of_anybody(metadata: str | None, told: Any) -> None:
    """Metadata that is a number of ours is read as such, and any other metadata as foreign."""
    assert as_committed(7, metadata) == told


async def test_offsets_are_deleted(clients: Any) -> None:
    """Offsets are deleted, except for an unknown group or a topic with a subscribed member."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    await ask(one, "commit", ["commit", "g", {"a-0": 1, "a-1": 3}, "sync"])
    deletion = ["commit", "g", {"a-0": None}, "delete"]
    assert (await ask(one, "commit", deletion)).type == "ok"
    told = await ask(other, "committed", ["committed", "g", {"a-0": None, "a-1": None}])
    assert told.value == [["committed", "g", {"a-0": None, "a-1": 3}]]
    unknown = await ask(one, "commit", ["commit", "elsewhere", {"a-0": None}, "delete"])
    assert (unknown.type, unknown.error) == ("fail", "GroupIdNotFound")
    await join(other)
    await poll_until(other, "poll")
    refused = await ask(one, "commit", ["commit", "g", {"a-1": None}, "delete"])
    assert (refused.type, refused.error) == ("fail", "StillSubscribed")


async def test_a_coordinator_that_loads_has_not_said_that_nothing_is_committed(
    clients: Any,
) -> None:
    """An OffsetFetch that is rejected for the group is repeated, and not taken as empty."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0), ("a-0", 1))
    await ask(one, "commit", ["commit", "g", {"a-0": 1}, "sync"])
    refusals = {"GroupLoadInProgress": 14, "NotCoordinatorForGroup": 16}

    def refusing(send: Any) -> Any:
        codes = list(refusals.values())

        async def answer(request: Any) -> Any:
            if type(request).__name__ == "OffsetFetchRequest" and codes:
                return SimpleNamespace(error_code=codes.pop(), topics=[])
            return await send(request)

        return answer

    outsider = other._of("g")
    assert await outsider.start() is None
    outsider._send = refusing(outsider._send)
    told = await ask(other, "committed", ["committed", "g", {"a-0": None}])
    assert told.value == [["committed", "g", {"a-0": 1}]]
    await join(one)
    one._member._send = refusing(one._member._send)
    assigned, *_ = await poll_until(one, "poll")
    assert assigned[3]["a-0"] in (1, None)
    assert (await ask(one, "commit", ["commit", "g", {"a-0": 2}, "sync"])).type == "ok"


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
async def test_members_share_what_there_is(clients: Any, assignor: str) -> None:
    """The first member owns everything until the second one joins; both know where they start."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0), ("a-1", 1), ("a-1", 2))
    await ask(one, "commit", ["commit", "g", {"a-1": 1}, "sync"])
    await join(one, assignor=assignor)
    told = await poll_until(one, "poll")
    assert told[0][:2] == ["assigned", "g"]
    assert told[0][3] == {"a-0": 0, "a-1": 1}
    polled = told[1:]
    while {key for _, records in polled for key in records} != {"a-0", "a-1"}:
        # Without a committed offset it has to look up the beginning first.
        polled += await poll_until(one, "poll")
    assert sorted(polled, key=str) in (
        [["poll", {"a-0": [[0, 0]]}], ["poll", {"a-1": [[1, 2]]}]],
        [["poll", {"a-0": [[0, 0]], "a-1": [[1, 2]]}]],
    )
    await join(other, assignor=assignor)
    revoked, assigned, *_ = await poll_until(one, "assigned", (other,))
    assert revoked == ["revoked", "g", told[0][2], ["a-0", "a-1"]]
    assert assigned[2] > revoked[2]
    assert len(assigned[3]) == 1


async def test_a_listener_commits_what_it_has_read(clients: Any) -> None:
    """A listener commits before its partitions are revoked; the operation reports that order."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0), ("a-0", 1))
    await join(one, commit="listener")
    await poll_until(one, "poll")
    await join(other, commit="listener")
    commit, revoked, *_ = await poll_until(one, "revoked", (other,))
    assert commit == ["commit", "g", {"a-0": 2}, "listener"]
    assert revoked[0] == "revoked"
    told = await ask(other, "committed", ["committed", "g", {"a-0": None}])
    assert told.value == [["committed", "g", {"a-0": 2}]]


async def test_a_listener_in_doubt_tells_what_it_asked_for(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a listener's commit is in doubt, so is the poll that reports it, and the process ends."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    await join(one, commit="listener")
    await poll_until(one, "poll")

    async def lost(offsets: Any) -> tuple[str, str]:
        return "info", "RequestTimedOutError"

    monkeypatch.setattr(one._member, "_commit_now", lost)
    await join(other, commit="listener")
    async with asyncio.timeout(20):
        while (polled := await ask(one, "poll", ["poll"])).type == "ok":
            await ask(other, "poll", ["poll"])
    assert polled.error == "RequestTimedOutError"
    assert polled.value[0] == ["commit", "g", {"a-0": 1}, "listener"]


async def test_a_listener_that_nobody_polls_commits_nothing(clients: Any) -> None:
    """Without a poll in progress a listener commits nothing, because nothing would report it."""
    one, other = clients(0), clients(1)
    await written(one, ("a-0", 0))
    await join(one, commit="listener")
    await poll_until(one, "poll")
    await join(other, commit="listener")
    await poll_until(other, "assigned")
    told = await ask(other, "committed", ["committed", "g", {"a-0": None}])
    assert told.value == [["committed", "g", {"a-0": None}]]
    told_late = await ask(one, "poll", ["poll"])
    assert [each[0] for each in told_late.value][:2] == ["revoked", "assigned"]


async def test_one_who_was_frozen_is_refused(clients: Any) -> None:
    """A member that freezes for longer than its session cannot commit, and loses partitions."""
    one, other = clients(0, session_timeout_ms="300"), clients(1)
    await written(one, ("a-0", 0))
    await join(one)
    await poll_until(one, "poll")
    refused = await ask(one, "commit", ["freeze", "g", 800], ["commit", "g", {"a-0": 1}, "sync"])
    assert (refused.type, refused.error) == ("fail", "UnknownMemberIdError")
    told = await ask(other, "committed", ["committed", "g", {"a-0": None}])
    assert told.value == [["committed", "g", {"a-0": None}]]
    lost = await poll_until(one, "lost")
    assert lost[0] == ["lost", "g", None, ["a-0", "a-1"]]


async def test_a_leave_that_takes_too_long_is_in_doubt(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leave that takes too long is in doubt, and the client can still be closed."""
    one = clients(0)
    await written(one, ("a-0", 0))
    await join(one)
    await poll_until(one, "assigned")
    monkeypatch.setattr("workloads.client.aio_group.LEAVE_TIMEOUT_S", 0.0)
    left = await ask(one, "leave", ["leave", "g"])
    assert (left.type, left.error) == ("info", "TimeoutError")


async def test_a_crash_says_nothing_and_a_leave_does(clients: Any) -> None:
    """Partitions are reassigned at once after a leave, and after the session after a crash."""
    one, other, third = clients(0, session_timeout_ms="1500"), clients(1), clients(2)
    await written(one, ("a-0", 0))
    loop = asyncio.get_running_loop()
    for first, second, leaves in ((one, other, False), (other, third, True)):
        await join(first)
        await poll_until(first, "assigned")
        await join(second)
        await poll_until(second, "assigned", (first,))
        began_s = loop.time()
        if leaves:
            assert (await ask(first, "leave", ["leave", "g"])).type == "ok"
            assert not first.alive
        else:
            await first.close()
        told = await poll_until(second, "assigned")
        assert set(told[-1][3] if told[-1][0] == "assigned" else told[-2][3]) == {"a-0", "a-1"}
        assert (loop.time() - began_s < 1.0) is leaves
        if not leaves:
            await second.close()
            other = clients(3)


async def test_who_polls_again_joins_again(clients: Any) -> None:
    """A member that exceeded ``max.poll.interval.ms`` joins again when it polls again."""
    one = clients(0, max_poll_interval_ms="300")
    await written(one, ("a-0", 0))
    await join(one)
    await poll_until(one, "assigned")
    await asyncio.sleep(0.8)
    assert [kind for kind, *_ in await poll_until(one, "assigned")][:2] == ["lost", "assigned"]


async def test_a_poll_that_has_failed_waits_before_its_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next process would ask to join the same full group at once."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def refuse() -> None:
        raise KafkaError("the group is full")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    consumer = SimpleNamespace(
        _coordinator=SimpleNamespace(check_errors=refuse),
        _subscription=SimpleNamespace(fetch_context=nullcontext),
    )
    member: Any = Member.__new__(Member)
    member._consumer, member._feed = consumer, Feed("g")
    assert await member.poll() == ([["poll", {}]], "KafkaError")
    assert waits == [REFUSED_S]
