"""A following server, with a leader that a test plays."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker_impl.zookeeper.quorum import following, packets
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.following import Following
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.packets import Packet, PacketReader, Type
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.state_stream import encode_state
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory, create, session, z

TICK_MS = 200


class Site:
    """Server 2 follows server 1, which the test plays."""

    def __init__(self) -> None:
        self.history = RecordingHistory()
        self.server = Server(tick_ms=TICK_MS)
        self.epochs: list[int] = []
        self.streams: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )
        self._packets = PacketReader()
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.run: asyncio.Future[str]

    async def start(self) -> None:
        self.listener = await asyncio.start_server(
            lambda *streams: self.streams.put_nowait(streams), "127.0.0.1", 0
        )
        self.port = self.listener.sockets[0].getsockname()[1]
        self.follow()
        self.reader, self.writer = await self.streams.get()

    def follow(self) -> None:
        members = [Member(id_, "127.0.0.1", self.port, 1) for id_ in (1, 2, 3)]
        clock = asyncio.get_running_loop().time
        site = Membership(2, Ensemble(members), self.history, self.server, lambda: 7, clock)
        role = Following(site, self.epochs.append)
        self.run = asyncio.ensure_future(role.run(members[0]))

    def send(self, kind: Type, zxid: int, data: bytes = b"") -> None:
        self.writer.write(packets.encode(Packet(kind, zxid, data)))

    async def next(self) -> Packet:
        async with asyncio.timeout(10):
            while (packet := self._packets.next()) is None:
                self._packets.receive(await self.reader.read(65536))
            return packet

    async def discover(self) -> None:
        assert (await self.next()).type is Type.FOLLOWERINFO
        self.send(Type.LEADERINFO, z(1, 0), packets.encode_number(packets.PROTOCOL))
        assert (await self.next()).type is Type.ACKEPOCH

    async def serve(self) -> None:
        await self.discover()
        self.send(Type.DIFF, 0)
        self.send(Type.NEWLEADER, z(1, 0))
        assert (await self.next()).type is Type.ACK
        self.send(Type.UPTODATE, -1)
        assert (await self.next()).type is Type.ACK

    async def reason(self) -> str:
        """Why the server has left its leader."""
        async with asyncio.timeout(10):
            return await self.run


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.start()
    yield site
    site.run.cancel()
    await asyncio.gather(site.run, return_exceptions=True)
    site.writer.close()
    await asyncio.gather(site.writer.wait_closed(), return_exceptions=True)
    site.listener.close()
    await site.listener.wait_closed()


async def test_a_follower_logs_acknowledges_and_applies(site: Site) -> None:
    """A proposal is logged and acknowledged, and applied with its commit."""
    await site.serve()
    assert site.epochs == [1]
    assert site.server.serving.mode == "follower"
    site.send(Type.PROPOSAL, z(1, 1), create(z(1, 1), "a").entry)
    assert await site.next() == Packet(Type.ACK, z(1, 1))
    assert "/a" not in site.history.database.nodes
    site.send(Type.COMMIT, z(1, 1))
    site.send(Type.PING, z(1, 1))
    assert (await site.next()).type is Type.PING
    assert "/a" in site.history.database.nodes


async def test_a_state_is_read_from_the_stream(site: Site) -> None:
    """SNAP, the state, its signature and the packets behind it may arrive in any pieces."""
    leader = RecordingHistory()
    leader.log([session(1), create(2, "a")])
    leader.commit_to(2)
    await site.discover()
    stream = packets.short(Type.SNAP, 2) + encode_state(leader.database)
    stream += packets.SNAPSHOT_END + packets.short(Type.NEWLEADER, z(1, 0))
    for at in range(0, len(stream), 50):
        site.writer.write(stream[at : at + 50])
        await asyncio.sleep(0)
    assert await site.next() == Packet(Type.ACK, z(1, 0))
    assert "/a" in site.history.database.nodes
    assert ("install", 2) in site.history.store.taken()


async def test_a_state_without_its_signature_is_refused(site: Site) -> None:
    """What follows the state must be its signature; nothing is installed otherwise."""
    await site.discover()
    state = encode_state(RecordingHistory().database)
    site.writer.write(packets.short(Type.SNAP, 2) + state + b"\0\0\0\x0aBenIsAway!")
    assert "signature" in await site.reason()
    assert site.history.store.taken() == [("accept", 1)]


async def test_a_state_that_breaks_off_is_not_installed(site: Site) -> None:
    """A leader that is lost while it sends its state leaves no trace (ZOOKEEPER-3642)."""
    site.history.fill(1, 2)
    before = site.history.database
    await site.discover()
    site.writer.write(packets.short(Type.SNAP, 9) + encode_state(before)[:-5])
    site.writer.close()
    assert "ended" in await site.reason()
    assert site.history.database is before
    assert site.history.store.taken() == [("accept", 1)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (packets.short(Type.SYNC, 0), "no sync was forwarded"),
        (packets.short(Type.COMMIT, z(1, 1)), "committed"),
        (packets.short(Type.UPTODATE, -1), "UPTODATE"),
        (b"\0\0\0\x63" + bytes(20), "unreadable"),
        (packets.encode(Packet(Type.PROPOSAL, 1, b"?")), "bytes"),
    ],
    ids=["sync", "commit", "phase", "no packet", "no transaction"],
)
async def test_a_leader_that_breaks_the_protocol_is_left(
    data: bytes, reason: str, site: Site
) -> None:
    """What the protocol does not allow makes the follower leave, and changes nothing."""
    await site.serve()
    site.writer.write(data)
    assert reason in await site.reason()
    assert site.history.last_zxid == 0


async def test_a_silent_leader_is_left(site: Site) -> None:
    """A leader that sends nothing for ``syncLimit`` ticks is left."""
    await site.serve()
    assert "silent" in await site.reason()


async def test_a_leader_that_does_not_listen_is_given_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower tries several times, because its leader may have decided later than itself."""
    monkeypatch.setattr(following, "CONNECT_PAUSE_S", 0)
    site.listener.close()
    await site.listener.wait_closed()
    site.run.cancel()
    await asyncio.gather(site.run, return_exceptions=True)
    site.follow()
    assert "cannot be reached" in await site.reason()
