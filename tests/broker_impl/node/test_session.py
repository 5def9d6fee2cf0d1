import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from broker_impl import config
from broker_impl.errors import ConfigError
from broker_impl.node import session as module
from broker_impl.node import zk_paths
from broker_impl.node.session import Session, persist
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss, SessionExpired
from tests.broker_impl.conftest import ZooKeeperInLoop

ZNODE = zk_paths.BrokerZnode(
    host="h", port=1, endpoints=[], listener_security_protocol_map={}, timestamp="0"
)
PATH = zk_paths.broker(1)


class Client(ZooKeeper):
    """A client that is recorded in ``made``; the first ones fail to start with ``starts``."""

    starts: ClassVar[list[Exception]]
    made: ClassVar[list["Client"]]

    def __init__(self, connect: str, *, on_state: Any, **options: Any) -> None:
        super().__init__(connect, on_state=on_state, **options)
        self.on_state = on_state
        Client.made.append(self)

    async def start(self) -> None:
        if Client.starts:
            raise Client.starts.pop(0)
        await super().start()


async def client_of(zookeeper: ZooKeeperInLoop) -> ZooKeeper:
    client = ZooKeeper(zookeeper.address, session_timeout_ms=5000, rng=random.Random(0))
    await client.start()
    await client.ensure_path(PATH.rpartition("/")[0])
    return client


@pytest.fixture
async def other(zookeeper: ZooKeeperInLoop) -> AsyncIterator[ZooKeeper]:
    """Another client of the same server, which has created the parents of all registrations."""
    client = await client_of(zookeeper)
    yield client
    await client.close()


@pytest.fixture
async def session(
    monkeypatch: pytest.MonkeyPatch, zookeeper: ZooKeeperInLoop, other: ZooKeeper
) -> AsyncIterator[Session]:
    monkeypatch.setattr(module, "ZooKeeper", Client)
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
    Client.starts, Client.made = [], []
    settings = {
        "broker.id": "1",
        "zookeeper.connect": zookeeper.address,
        "zookeeper.session.timeout.ms": "10",
    }
    session = Session(config.parse(settings), random.Random(0))
    yield session
    await session.close()


async def test_a_session_that_is_over_at_once_is_followed_by_another(session: Session) -> None:
    """A session that expires before it is used is replaced by another, without an expiry event."""
    Client.starts = [SessionExpired("over"), SessionExpired("over")]
    await session.open()
    states = [client.state for client in Client.made]
    assert states == [SessionState.CLOSED, SessionState.CLOSED, SessionState.CONNECTED]
    assert not session.expired.is_set()


async def test_only_the_session_of_now_can_expire(session: Session) -> None:
    """Only the present session can report its expiry, a replaced one cannot."""
    await session.open()
    await session.open()
    Client.made[0].on_state(SessionState.EXPIRED)
    Client.made[1].on_state(SessionState.SUSPENDED)
    assert not session.expired.is_set()
    Client.made[1].on_state(SessionState.EXPIRED)
    assert session.expired.is_set()
    await session.close()
    assert Client.made[1].state is SessionState.CLOSED


async def test_registering_waits_for_the_registration_of_an_earlier_process(
    session: Session, zookeeper: ZooKeeperInLoop
) -> None:
    """Registration waits until the znode of an earlier process is gone with its session.

    The czxid of the new znode is the broker epoch.
    """
    earlier = await client_of(zookeeper)
    await earlier.create(PATH, b"", ephemeral=True)
    await session.open()
    registering = asyncio.create_task(session.register(ZNODE))
    await asyncio.sleep(0.02)
    assert not registering.done()
    await earlier.close()
    await registering
    stat = await session.zk.exists(PATH)
    assert stat is not None
    assert (stat.ephemeral_owner, stat.czxid) == (session.zk.session_id, session.broker_epoch)


async def test_a_registration_whose_answer_was_lost_is_found(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registration whose response was lost is found: the present session owns the znode."""
    await session.open()
    create2 = session.zk.create2

    async def lose(*arguments: Any, **named: Any) -> Any:
        await create2(*arguments, **named)
        raise ConnectionLoss("the response was lost")

    with monkeypatch.context() as patched:
        patched.setattr(session.zk, "create2", lose)
        with pytest.raises(ConnectionLoss):
            await session.register(ZNODE)
    await session.register(ZNODE)
    stat = await session.zk.exists(PATH)
    assert stat is not None
    assert session.broker_epoch == stat.czxid


async def test_another_broker_with_the_same_id_is_refused(
    session: Session, other: ZooKeeper
) -> None:
    """A foreign registration that outlasts three session timeouts belongs to another broker.

    The longer of the requested and the granted timeout counts.
    """
    await other.create(PATH, b"", ephemeral=True)
    await session.open()
    session.zk.session_timeout_ms = 20
    began = asyncio.get_running_loop().time()
    with pytest.raises(ConfigError, match="another broker is registered"):
        await session.register(ZNODE)
    assert asyncio.get_running_loop().time() - began >= 0.06


async def test_persisting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`persist` retries an action that fails in ZooKeeper until it succeeds or the event is set."""
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
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
