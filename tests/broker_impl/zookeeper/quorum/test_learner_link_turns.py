"""A leader's connection writes once in a turn, and hands over what a learner acknowledges."""

import asyncio

from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.learner_link import LearnerLink
from broker_impl.zookeeper.quorum.packets import Packet, Type
from broker_impl.zookeeper.tree import Database

EPOCH = 1 << 32


class _Owner:
    """Records what a connection hands over."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.sent = 0

    def connected(self, link: LearnerLink) -> None:
        """No more than the connection."""

    def arrived(self, key: int, packet: Packet) -> None:
        self.packets.append(packet)

    def state_sent(self, key: int) -> None:
        self.sent += 1

    def left(self, key: int) -> None:
        """The connection has ended."""


class _Transport(asyncio.Transport):
    """Records each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def abort(self) -> None:
        """The connection is over."""


def _link() -> tuple[LearnerLink, _Owner, _Transport]:
    owner, transport = _Owner(), _Transport()
    link = LearnerLink(owner, 1)
    link.connection_made(transport)
    return link, owner, transport


def test_what_is_sent_in_a_turn_is_written_at_once() -> None:
    """Packets wait for the end of the turn, and keep their order."""

    async def main() -> None:
        link, _, transport = _link()
        link.send(b"a")
        link.send(b"b")
        assert transport.writes == []
        await asyncio.sleep(0)
        assert transport.writes == [b"ab"]
        link.send(b"c")
        await asyncio.sleep(0)
        assert transport.writes == [b"ab", b"c"]

    asyncio.run(main())


def test_a_flush_does_not_wait() -> None:
    """A leader sends proposals before it syncs its own log, which blocks the loop."""

    async def main() -> None:
        link, _, transport = _link()
        link.send(b"a")
        link.flush()
        assert transport.writes == [b"a"]
        await asyncio.sleep(0)
        assert transport.writes == [b"a"], "nothing is written twice"

    asyncio.run(main())


def test_the_state_follows_what_was_sent_before_it() -> None:
    """Packets before SNAP are written before it, later ones behind the state."""

    async def main() -> None:
        link, owner, transport = _link()
        link.send(b"before")
        link.send_state(Database())
        link.send(b"behind")
        for _ in range(3):
            await asyncio.sleep(0)
        assert owner.sent == 1
        written = b"".join(transport.writes)
        assert written.startswith(b"before" + packets.short(Type.SNAP, 0))
        assert written.endswith(packets.SNAPSHOT_END + b"behind")

    asyncio.run(main())


def test_nothing_is_written_after_the_end() -> None:
    """What was sent in the turn in which a connection ends is dropped with it."""

    async def main() -> None:
        link, _, transport = _link()
        link.send(b"a")
        link.abort()
        await asyncio.sleep(0)
        assert transport.writes == []

    asyncio.run(main())


def test_of_several_acknowledgements_the_last_is_handed_over() -> None:
    """One that is not followed by another is handed over, and that of NEWLEADER always."""
    link, owner, _ = _link()
    sent = [
        Packet(Type.ACK, EPOCH),
        Packet(Type.ACK, EPOCH + 1),
        Packet(Type.ACK, EPOCH + 2),
        Packet(Type.PING, 0),
        Packet(Type.ACK, EPOCH + 3),
        Packet(Type.ACK, EPOCH),
        Packet(Type.ACK, EPOCH + 4),
    ]
    link.data_received(b"".join(map(packets.encode, sent)))
    assert owner.packets == [each for each in sent if each.zxid != EPOCH + 1]
