import asyncio
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from broker_impl.node.peers import PeerError, Peers
from broker_impl.wire.framing import encode_response
from broker_impl.wire.messages import response_module
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse

KEY, VERSION = 10, 1


class FakePeer:
    """A server that answers each request with `reply`; an empty reply sends nothing."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.reply: Callable[[int], bytes] = answer
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                writer.write(self.reply(int.from_bytes(frame[4:8], "big")))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    async def stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def answer(number: int, host: str = "") -> bytes:
    body = response_module(KEY).encode(FindCoordinatorResponse(host=host), VERSION)
    return b"".join(encode_response(KEY, VERSION, number, body))


@pytest.fixture
async def peer() -> AsyncIterator[FakePeer]:
    peer = FakePeer()
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def peers(peer: FakePeer) -> AsyncIterator[Peers]:
    peers = Peers("test", {})
    peers.update({1: ("127.0.0.1", peer.port)})
    yield peers
    peers.close()


async def ask(peers: Peers, broker: int = 1, timeout_s: float = 5) -> str:
    found = await peers.request(
        broker, FindCoordinatorRequest(key="k"), VERSION, timeout_s=timeout_s
    )
    return str(found.host)


async def test_one_connection_serves_all_requests(peer: FakePeer, peers: Peers) -> None:
    """Concurrent requests share a connection, and each gets its own answer."""
    peer.reply = lambda number: answer(number, str(number))
    assert sorted(await asyncio.gather(*(ask(peers) for _ in range(5)))) == list("12345")
    assert peer.connections == 1


async def test_a_late_answer_is_never_taken_for_another(peer: FakePeer, peers: Peers) -> None:
    """A time-out closes the connection, so that a late answer is not taken for the next one."""
    peer.reply = lambda number: b""
    with pytest.raises(PeerError, match="did not answer in"):
        await ask(peers, timeout_s=0.02)
    peer.reply = lambda number: answer(number, "fresh")
    assert await ask(peers) == "fresh"
    assert peer.connections == 2


async def test_who_asks_no_more_drops_the_connection(peer: FakePeer, peers: Peers) -> None:
    """A cancelled request closes the connection too."""
    peer.reply = lambda number: b""
    asking = asyncio.create_task(ask(peers))
    await asyncio.sleep(0.02)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    peer.reply = answer
    await ask(peers)
    assert peer.connections == 2


@pytest.mark.parametrize(
    "reply",
    [
        lambda number: struct.pack(">ii", 4, number),
        lambda number: struct.pack(">i", -1),
        lambda number: struct.pack(">ii", 8, number) + b"\xff\xff\xff\xff",
    ],
    ids=["short", "negative", "garbage"],
)
async def test_garbage_is_a_failure_of_the_peer(
    peer: FakePeer, peers: Peers, reply: Callable[[int], bytes]
) -> None:
    """An unreadable answer fails the request and closes the connection."""
    peer.reply = reply
    with pytest.raises(PeerError):
        await ask(peers)
    peer.reply = answer
    await ask(peers)
    assert peer.connections == 2


async def test_failures_to_reach_a_peer(peer: FakePeer, peers: Peers) -> None:
    """A request fails with PeerError if the peer is unknown, unreachable, or lost meanwhile."""
    with pytest.raises(PeerError, match="broker 7 is not known to be alive"):
        await ask(peers, 7)
    peer.reply = lambda number: b""
    asking = asyncio.create_task(ask(peers))
    await asyncio.sleep(0.02)
    await peer.stop()
    with pytest.raises(PeerError, match="the connection was lost"):
        await asking
    with pytest.raises(PeerError, match="broker 1"):
        await ask(peers)


async def test_a_new_address_ends_the_old_connection(peer: FakePeer, peers: Peers) -> None:
    """A new address of a peer closes the old connection; a peer that is removed fails at once."""
    await ask(peers)
    other = FakePeer()
    await other.start()
    other.reply = lambda number: answer(number, "other")
    peers.update({1: ("127.0.0.1", other.port)})
    assert await ask(peers) == "other"
    other.reply = lambda number: b""
    asking = asyncio.create_task(ask(peers))
    await asyncio.sleep(0.02)
    peers.update({})
    with pytest.raises(PeerError, match="the connection was lost"):
        await asking
    await other.stop()


async def test_a_peer_that_moves_while_it_is_called(peer: FakePeer, peers: Peers) -> None:
    """A connection to an outdated address is not used: another server may be there."""
    asking = asyncio.create_task(ask(peers))
    await asyncio.sleep(0)
    peers.update({})
    with pytest.raises(PeerError, match="broker 1 has a new address"):
        await asking


async def test_overrides_go_before_what_is_advertised(peer: FakePeer) -> None:
    """faultline.peer.<id>, the address of a proxy, takes precedence over the advertised address."""
    peers = Peers("test", {1: ("127.0.0.1", peer.port)})
    peers.update({1: ("127.0.0.1", 1)})
    assert await ask(peers) == ""
    peers.close()
