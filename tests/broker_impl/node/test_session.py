import asyncio
import random
from typing import Any, ClassVar

import pytest

from broker_impl.errors import ConfigError
from broker_impl.node import session as module
from broker_impl.node import zk_paths
from broker_impl.node.session import Session, persist
from broker_impl.zookeeper.client import SessionState
from broker_impl.zookeeper.errors import ConnectionLoss, NodeExists, SessionExpired


class Stat:
    def __init__(self, owner: int, czxid: int) -> None:
        self.ephemeral_owner = owner
        self.czxid = czxid


class FakeClient:
    """A ZooKeeper client with one session; the class attributes script its results."""

    starts: ClassVar[list[Exception]]
    made: ClassVar[list["FakeClient"]]
    creates: ClassVar[list[Any]]
    found: ClassVar[list[Stat | None]]

    def __init__(self, connect: str, *, session_timeout_ms: int, rng: Any, on_state: Any) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.session_id = 100 + len(FakeClient.made)
        self.on_state = on_state
        self.is_closed = False
        FakeClient.made.append(self)

    async def start(self) -> None:
        if FakeClient.starts:
            raise FakeClient.starts.pop(0)

    async def close(self) -> None:
        self.is_closed = True

    async def create2(self, path: str, data: bytes, *, ephemeral: bool) -> tuple[str, Stat]:
        assert (path, ephemeral) == (zk_paths.broker(1), True)
        outcome = FakeClient.creates.pop(0) if FakeClient.creates else NodeExists(path)
        if isinstance(outcome, Exception):
            raise outcome
        return path, outcome

    async def exists(self, path: str) -> Stat | None:
        return FakeClient.found.pop(0) if len(FakeClient.found) > 1 else FakeClient.found[0]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(module, "ZooKeeper", FakeClient)
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
    FakeClient.starts, FakeClient.made = [], []
    FakeClient.creates, FakeClient.found = [], [None]
    return Session("h:1", timeout_ms=10, broker_id=1, rng=random.Random(0))


ZNODE = zk_paths.BrokerZnode(
    host="h", port=1, endpoints=[], listener_security_protocol_map={}, timestamp="0"
)


async def test_a_session_that_is_over_at_once_is_followed_by_another(session: Session) -> None:
    """A session that expires before it is used is replaced by another, without an expiry event."""
    FakeClient.starts = [SessionExpired("over"), SessionExpired("over")]
    await session.open()
    assert [client.is_closed for client in FakeClient.made] == [True, True, False]
    assert not session.expired.is_set()


async def test_only_the_session_of_now_can_expire(session: Session) -> None:
    """Only the present session can report its expiry, a replaced one cannot."""
    await session.open()
    await session.open()
    FakeClient.made[0].on_state(SessionState.EXPIRED)
    FakeClient.made[1].on_state(SessionState.SUSPENDED)
    assert not session.expired.is_set()
    FakeClient.made[1].on_state(SessionState.EXPIRED)
    assert session.expired.is_set()
    await session.close()
    assert FakeClient.made[1].is_closed


async def test_registering_waits_for_the_own_ghost(session: Session) -> None:
    """Registration waits until the znode of an earlier process is gone with its session.

    The czxid of the new znode is the broker epoch.
    """
    await session.open()
    FakeClient.creates = [NodeExists("n"), NodeExists("n"), Stat(100, 77)]
    FakeClient.found = [Stat(5, 66), None]
    await session.register(ZNODE)
    assert session.broker_epoch == 77


async def test_a_registration_whose_answer_was_lost_is_found(session: Session) -> None:
    """A registration whose response was lost is found: the present session owns the znode."""
    await session.open()
    FakeClient.creates = [NodeExists("n")]
    FakeClient.found = [Stat(100, 88)]
    await session.register(ZNODE)
    assert session.broker_epoch == 88


async def test_somebody_else_with_our_id_is_told_by_time(session: Session) -> None:
    """A foreign registration that outlasts three session timeouts belongs to another broker.

    The longer of the requested and the granted timeout counts.
    """
    await session.open()
    session.zk.session_timeout_ms = 20
    FakeClient.found = [Stat(5, 66)]
    began = asyncio.get_running_loop().time()
    with pytest.raises(ConfigError, match="another broker is registered with this id"):
        await session.register(ZNODE)
    assert asyncio.get_running_loop().time() - began >= 0.06


async def test_persisting(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """`persist` retries an action that fails in ZooKeeper until it succeeds or the event is set."""
    outcomes: list[Exception | None] = [ConnectionLoss("cut"), SessionExpired("over"), None]

    async def action() -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    event = asyncio.Event()
    assert await persist(action, until=event)
    assert outcomes == []
    outcomes = [ConnectionLoss("cut")] * 1000
    asyncio.get_running_loop().call_later(0.005, event.set)
    assert not await persist(action, until=event)
