"""A leading server and its learners' connections, with a learner that a test plays."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.leading import Leading
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.packets import LearnerInfo, Packet, PacketReader, Request, Type
from broker_impl.zookeeper.records import OPEN_ACL, CreateRequest, Op
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.txn_records import CreateSessionTxn, ErrorTxn, Proposal
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory, z

SESSION = 0x200000000000005


class Learner:
    """A follower, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._packets = PacketReader()

    def send(self, kind: Type, zxid: int, data: bytes = b"") -> None:
        self.writer.write(packets.encode(Packet(kind, zxid, data)))

    def forward(self, op: int, body: bytes, xid: int = 1, session_id: int = SESSION) -> None:
        request = Request(session_id, xid, op, body)
        self.writer.write(packets.encode_request(request, ()))

    async def next(self) -> Packet:
        """The next packet that is no ping."""
        async with asyncio.timeout(10):
            while True:
                while (packet := self._packets.next()) is None:
                    data = await self.reader.read(65536)
                    assert data, "the leader has closed the connection"
                    self._packets.receive(data)
                if packet.type is not Type.PING:
                    return packet

    async def expect(self, *kinds: Type) -> list[Packet]:
        found = [await self.next() for _ in kinds]
        assert [packet.type for packet in found] == list(kinds)
        return found

    async def commit(self) -> Proposal:
        """Acknowledge the next proposal, and wait for its commit."""
        [proposal] = await self.expect(Type.PROPOSAL)
        self.send(Type.ACK, proposal.zxid)
        [commit] = await self.expect(Type.COMMIT)
        assert commit.zxid == proposal.zxid
        return Proposal.decode(proposal.data)

    async def end(self) -> bool:
        """Wait until the leader has closed the connection."""
        async with asyncio.timeout(10):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass
        return True


class Site:
    """Server 1 of three leads; the test plays server 2."""

    def __init__(self, port: int) -> None:
        members = [Member(id_, "127.0.0.1", port, 1) for id_ in (1, 2, 3)]
        self.port = port
        self.history = RecordingHistory()
        self.server = Server(tick_ms=2000)
        self.epochs: list[int] = []
        clock = asyncio.get_running_loop().time
        site = Membership(1, Ensemble(members), self.history, self.server, lambda: 7, clock)
        self.leading = Leading(site, self.epochs.append)
        self.run = asyncio.ensure_future(self.leading.run())
        self.learners: list[Learner] = []

    async def connect(self) -> Learner:
        while True:
            try:
                learner = Learner(*await asyncio.open_connection("127.0.0.1", self.port))
            except ConnectionRefusedError:
                await asyncio.sleep(0)
            else:
                self.learners.append(learner)
                return learner

    async def follow(self) -> Learner:
        """Connect, and take over the leader's history."""
        learner = await self.connect()
        info = LearnerInfo(2, packets.PROTOCOL, 0).encode()
        learner.send(Type.FOLLOWERINFO, 0, info)
        await learner.expect(Type.LEADERINFO)
        learner.send(Type.ACKEPOCH, 0, packets.encode_number(0))
        await learner.expect(Type.DIFF, Type.NEWLEADER)
        learner.send(Type.ACK, z(1, 0))
        await learner.expect(Type.UPTODATE)
        learner.forward(Op.CREATE_SESSION, CreateSessionTxn(4000).encode(), xid=0)
        await learner.commit()
        return learner


@pytest.fixture
async def site(unused_tcp_port: int) -> AsyncIterator[Site]:
    site = Site(unused_tcp_port)
    yield site
    site.run.cancel()
    await asyncio.gather(site.run, return_exceptions=True)
    for learner in site.learners:
        learner.writer.close()
        await asyncio.gather(learner.writer.wait_closed(), return_exceptions=True)


async def test_a_forwarded_write_is_ordered_and_committed(site: Site) -> None:
    """A write of a learner's client is proposed with its session, xid and the leader's time."""
    learner = await site.follow()
    assert site.epochs == [1]
    learner.forward(Op.CREATE, CreateRequest("/a", b"x", OPEN_ACL, 0).encode(), xid=9)
    proposal = await learner.commit()
    assert (proposal.header.session_id, proposal.header.cxid) == (SESSION, 9)
    assert proposal.header.time_ms == 7
    assert site.history.database.nodes["/a"].czxid == z(1, 2)


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (Op.CREATE, b"\0\0"),
        (Op.DELETE_CONTAINER, b"\0\0\0\x02/a\0\0\0\0"),
        (Op.GET_DATA, b""),
        (99, b""),
    ],
    ids=["unreadable", "a server's", "a read", "unknown"],
)
async def test_what_no_client_may_forward_is_an_error(op: int, body: bytes, site: Site) -> None:
    """A request that is no write of a client is answered by an error, and changes nothing."""
    learner = await site.follow()
    learner.forward(op, body, xid=9)
    proposal = await learner.commit()
    assert proposal.txn == ErrorTxn(Code.MARSHALLING_ERROR)


async def test_a_sync_follows_the_writes_before_it(site: Site) -> None:
    """A forwarded sync is answered behind the commits of what was forwarded before."""
    learner = await site.follow()
    learner.forward(Op.CREATE, CreateRequest("/a", b"", OPEN_ACL, 0).encode(), xid=1)
    learner.forward(Op.SYNC, b"\0\0\0\x01/", xid=2)
    await learner.commit()
    await learner.expect(Type.SYNC)


async def test_sessions_are_revalidated(site: Site) -> None:
    """The leader knows which sessions live, and refuses writes of one that has moved."""
    learner = await site.follow()
    for session_id, is_valid in ((SESSION, True), (77, False)):
        learner.send(Type.REVALIDATE, -1, packets.encode_session(session_id, 4000))
        [answer] = await learner.expect(Type.REVALIDATE)
        assert packets.decode_validity(answer.data) == (session_id, is_valid)
    site.leading.revalidate(SESSION, 4000)
    learner.forward(Op.CREATE, CreateRequest("/a", b"", OPEN_ACL, 0).encode(), xid=1)
    assert (await learner.commit()).txn == ErrorTxn(Code.SESSION_MOVED)


async def test_a_session_is_expired_once_its_end_is_committed(site: Site) -> None:
    """A client learns of the end of its session when the ephemeral nodes are gone, not before.

    Its question arrives in the turn in which the session expires.
    """
    learner = await site.follow()
    site.leading._tracker.touch(SESSION, -100.0)
    site.server.serving.expire()
    [key] = site.leading.state.learners
    question = Packet(Type.REVALIDATE, -1, packets.encode_session(SESSION, 4000))
    site.leading.arrived(key, question)
    assert (await learner.commit()).header.type == Op.CLOSE_SESSION
    [answer] = await learner.expect(Type.REVALIDATE)
    assert packets.decode_validity(answer.data) == (SESSION, False)


async def test_bytes_that_are_no_packet_end_the_connection(site: Site) -> None:
    """A learner that sends something else is dropped, and another one is served."""
    learner = await site.connect()
    learner.writer.write(b"GET / HTTP/1.1" + bytes(30))
    assert await learner.end()
    await site.follow()


async def test_a_leader_without_zxids_gives_up(site: Site) -> None:
    """The counter must not reach the epoch: a new epoch begins (ZOOKEEPER-1277)."""
    learner = await site.follow()
    site.leading._proposer._zxid = zxids.first_of(1) + zxids.COUNTER_MAX - 1
    learner.forward(Op.CREATE, CreateRequest("/a", b"", OPEN_ACL, 0).encode(), xid=1)
    async with asyncio.timeout(10):
        assert "zxids" in await site.run
    assert await learner.end()
