"""A leader's connection sends the state in slices, and everything else behind it."""

import asyncio
from collections.abc import Callable

import pytest

from broker_impl.zookeeper.quorum import learner_link, packets
from broker_impl.zookeeper.quorum.learner_link import LearnerLink
from broker_impl.zookeeper.quorum.packets import Packet, PacketReader, Type
from broker_impl.zookeeper.state_stream import StateReader
from broker_impl.zookeeper.tree import Database
from tests.broker_impl.zookeeper.quorum.conftest import create, session


class Transport(asyncio.Transport):
    """A connection that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.writes = 0
        self.is_aborted = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes | bytearray)
        self.data += bytes(data)
        self.writes += 1

    def abort(self) -> None:
        self.is_aborted = True


class Owner:
    """A leader that records what its connection reports."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.on_state_sent: Callable[[], object] = lambda: None

    def connected(self, link: LearnerLink) -> None:
        self.events.append("connected")

    def arrived(self, key: int, packet: Packet) -> None:
        self.events.append(packet)

    def state_sent(self, key: int) -> None:
        self.events.append("state sent")
        self.on_state_sent()

    def left(self, key: int) -> None:
        self.events.append("left")


class Site:
    def __init__(self, nodes: int = 40) -> None:
        self.owner, self.transport = Owner(), Transport()
        self.link = LearnerLink(self.owner, 7)
        self.link.connection_made(self.transport)
        self.database = Database()
        self.database.apply(session(1))
        for zxid in range(2, nodes + 2):
            self.database.apply(create(zxid))

    def received(self) -> tuple[int, Database, list[Packet]]:
        """What the learner reads: the zxid of SNAP, the state, and the packets behind it."""
        reader = PacketReader()
        reader.receive(self.transport.data)
        snap = reader.next()
        assert snap is not None
        assert snap.type is Type.SNAP
        state = StateReader(snap.zxid)
        state.receive(reader.rest())
        assert state.is_complete
        rest = state.rest()
        assert rest.startswith(packets.SNAPSHOT_END)
        reader.receive(rest[len(packets.SNAPSHOT_END) :])
        found = []
        while (packet := reader.next()) is not None:
            found.append(packet)
        return snap.zxid, state.database, found


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_link, "NODES_PER_SLICE", 10)


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_is_sent_meanwhile_follows_the_state() -> None:
    """Packets that are sent during the state come behind it, and before what ends it."""
    site = Site()
    site.owner.on_state_sent = lambda: site.link.send(packets.short(Type.NEWLEADER, 0))
    site.link.send_state(site.database)
    for zxid in range(50, 53):
        site.link.send(packets.short(Type.COMMIT, zxid))
        await turns(2)
    assert "state sent" not in site.owner.events
    await turns()
    zxid, database, behind = site.received()
    assert zxid == site.database.last_zxid
    assert database.nodes == site.database.nodes
    assert [packet.zxid for packet in behind] == [50, 51, 52, 0]
    assert site.transport.writes > 5, "in slices"
    site.link.send(packets.short(Type.COMMIT, 53))
    await turns(1)
    assert site.transport.data.endswith(packets.short(Type.COMMIT, 53))


async def test_a_slow_learner_is_waited_for() -> None:
    """No slice is made while the learner has not read the earlier ones."""
    site = Site()
    site.link.send_state(site.database)
    await turns(6)
    site.link.pause_writing()
    await turns(2)
    size = len(site.transport.data)
    await turns()
    assert len(site.transport.data) == size
    site.link.resume_writing()
    await turns()
    assert site.owner.events == ["connected", "state sent"]
    assert site.received()[1].nodes == site.database.nodes


@pytest.mark.parametrize("end", ["abort", "lost"])
async def test_the_end_of_a_connection_ends_the_state(end: str) -> None:
    """Nothing is written to a connection that has ended."""
    site = Site()
    site.link.send_state(site.database)
    await turns(3)
    if end == "abort":
        site.link.abort()
        assert site.transport.is_aborted
    else:
        site.link.connection_lost(None)
    size = len(site.transport.data)
    await turns()
    assert len(site.transport.data) == size
    assert "state sent" not in site.owner.events


async def test_packets_are_handed_over_in_order() -> None:
    """Packets of one read are handed over in order; what is no packet ends the connection."""
    site = Site()
    first, second = Packet(Type.ACK, 1), Packet(Type.PING, 2, b"x")
    site.link.data_received(packets.encode(first) + packets.encode(second))
    assert site.owner.events[1:] == [first, second]
    site.link.data_received(b"\0\0\0\x63" + bytes(20))
    assert site.transport.is_aborted
