"""Requests that need ZooKeeper wait for a connection; only reads are repeated."""

from typing import Any

import pytest

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node import zk_answers
from broker_impl.zookeeper.errors import BadArguments, ConnectionLoss, SessionExpired
from tests.broker_impl.node.broker_calls import create, describe
from tests.broker_impl.node.test_config_changes import TOPIC, alter, told


class Answers:
    """Raises or returns what it was given, one after the other."""

    def __init__(self, *results: Exception | str) -> None:
        self.left = [*results]

    async def connected(self) -> None:
        await self()

    async def __call__(self, zk: Any = None) -> str:
        result = self.left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zk_answers, "_RETRY_S", 0.001)


async def test_a_read_is_repeated_after_a_lost_connection() -> None:
    """Neither a lost connection nor an expired session is reported while there is time."""
    answers = Answers(ConnectionLoss("lost"), SessionExpired("expired"), "found")
    assert await zk_answers.read(answers, 5) == "found"


async def test_a_read_ends_in_time() -> None:
    """After the timeout the client gets REQUEST_TIMED_OUT."""
    answers = Answers(*[ConnectionLoss("lost")] * 1000)
    with pytest.raises(ApiError) as raised:
        await zk_answers.read(answers, 0.02)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert 0 < len(answers.left) < 999, "it was repeated until then"


async def test_a_write_is_not_repeated() -> None:
    """A write whose connection was lost may have been applied."""
    zk: Any = Answers("connected")
    writes = Answers(ConnectionLoss("lost"), "written")
    with pytest.raises(ApiError) as raised:
        await zk_answers.write(lambda: zk, writes, 5)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert writes.left == ["written"]


async def test_a_write_waits_for_the_next_session() -> None:
    """A write is not sent in a session that has expired, but in the one that follows."""
    expired: Any = Answers(SessionExpired("expired"))
    sessions: list[Any] = [expired, Answers("connected")]
    seen: list[Any] = []

    async def write(zk: Any) -> str:
        seen.append(zk)
        return "written"

    assert await zk_answers.write(lambda: sessions.pop(0), write, 5) == "written"
    assert seen != [expired]
    assert len(seen) == 1


async def test_a_write_without_a_session_is_not_sent() -> None:
    """If no session follows in time, the client gets REQUEST_TIMED_OUT."""
    zk: Any = Answers(*[SessionExpired("expired")] * 1000)
    writes = Answers("written")
    with pytest.raises(ApiError) as raised:
        await zk_answers.write(lambda: zk, writes, 0.02)
    assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert writes.left == ["written"]


async def test_an_impossible_name_is_an_invalid_request() -> None:
    """A name that no znode can have is the client's error."""
    with pytest.raises(ApiError) as raised:
        await zk_answers.read(Answers(BadArguments("/a//b")), 5)
    assert raised.value.code == ErrorCode.INVALID_REQUEST


async def test_clients_do_not_see_a_short_loss_of_the_connection(three: Any) -> None:
    """A broker reads and changes settings although its connection has just been lost (KIP-226)."""
    await create(three)
    zk = three.brokers[1].broker._session.zk
    zk._connection.drop()
    assert await alter(three, 1, TOPIC, "t", ("retention.ms", 0, "5")) == (0, "")
    zk._connection.drop()
    assert await told(three, 1, TOPIC, "t", "retention.ms") == ("5", 1)


async def test_without_zookeeper_requests_time_out(cluster: Any) -> None:
    """A broker that has no ZooKeeper answers REQUEST_TIMED_OUT after request.timeout.ms."""
    await cluster.add(1, request_timeout_ms="200")
    await cluster.ready()
    await create(cluster, replicas=1)
    await cluster.zookeeper.stop()
    found = await describe(cluster, 1)
    assert found.results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    code, message = await alter(cluster, 1, TOPIC, "t", ("retention.ms", 0, "5"))
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert message.startswith("cannot write to ZooKeeper"), message
