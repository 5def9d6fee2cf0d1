"""A server without an ensemble logs all writes of a turn with one sync, and then applies them."""

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.pipeline import Pipeline
from broker_impl.zookeeper.records import (
    OPEN_ACL,
    ConnectRequest,
    CreateRequest,
    Id,
    Op,
    PathRequest,
)
from broker_impl.zookeeper.store import Store
from tests.broker_impl.zookeeper.test_pipeline import World


def test_a_sync_is_answered_between_the_writes_around_it() -> None:
    """Writes and syncs of one turn are answered in their order."""
    world = World()
    client = world.client()
    client.submit(Op.CREATE, CreateRequest("/a", b"", OPEN_ACL, 0))
    client.submit(Op.SYNC, PathRequest("/"))
    client.submit(Op.CREATE, CreateRequest("/b", b"", OPEN_ACL, 0))
    world.pipeline.turn()
    assert [packet[0].xid for packet in client.taken()] == [1, 2, 3]  # type: ignore[attr-defined]
    assert world.ledger.batches == [1, 2], "one sync for both writes"


def start(disk: MemoryDisk, now: list[float]) -> Pipeline:
    store = Store(disk)
    return standalone.pipeline(
        History(store),
        secret=store.secret(lambda count: bytes(range(count))),
        tick_ms=1000,
        wall_ms=lambda: 5,
        clock=lambda: now[0],
    )


class Silent:
    """A connection that keeps its first answer."""

    def __init__(self) -> None:
        self.session_id = 0
        self.ids: tuple[Id, ...] = ()
        self.login = ServerExchange({}, str)
        self.is_open = True
        self.sent: list[Record] = []

    def send(self, *parts: Record) -> None:
        self.sent += parts

    def close(self) -> None:
        self.is_open = False

    def answered(self, op: int, xid: int, zxid: int, now: float, seconds: float) -> None:
        """Count nothing."""


def test_sessions_get_a_full_timeout_after_a_restart() -> None:
    """Sessions of a former life expire after their timeout, and their passwords stay valid."""
    disk, now = MemoryDisk(), [0.0]
    pipeline = start(disk, now)
    client = Silent()
    pipeline.connect(client, ConnectRequest(0, 0, 4000, 0, bytes(16), False))
    pipeline.turn()
    password = client.sent[0].password  # type: ignore[attr-defined]
    disk.kill()
    now[0] = 1000.0
    again = start(disk, now)
    now[0] = 1003.0
    again.expire()
    again.turn()
    assert client.session_id in again.database.sessions
    back = Silent()
    request = ConnectRequest(0, 0, 4000, client.session_id, password, False)
    again.connect(back, request)
    again.turn()
    assert back.session_id == client.session_id
    now[0] = 1009.0
    again.expire()
    again.turn()
    assert client.session_id not in again.database.sessions
