"""The message proxy over real connections: what is held arrives, and ends reach the other side."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from struct import pack

import pytest

from harness.cluster.address import Address
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.message_frames import REQUEST
from harness.cluster.mesh.message_interception import Interceptors
from harness.cluster.mesh.message_proxy import MessageProxy
from harness.cluster.mesh.toxiproxy import Mesh
from harness.cluster.ports import HOST
from harness.cluster.process import Process
from harness.cluster.registry import Registry
from model.capabilities.network import Interception, Selection

WAY = ("clients", "broker-1")
PRODUCE, FETCH = 0, 1
PATIENCE_S = 5.0


def request(key: int, number: int, body: bytes = bytes(20)) -> bytes:
    return REQUEST.pack(8 + len(body), key, 5, number) + body


def response(number: int, size: int = 10) -> bytes:
    return pack(">ii", 4 + size, number) + bytes(size)


class Broker:
    """A server that answers every request, and remembers them and the ends of connections."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.frames: list[bytes] = []
        self.raw = b""
        self.ended = 0
        self.is_raw = False
        """True for a server that echoes bytes."""
        self.connections: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        return Address(HOST, self._server.sockets[0].getsockname()[1])

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                if self.is_raw:
                    data = await reader.read(100)
                    if not data:
                        break
                    self.raw += data
                    writer.write(data)
                    continue
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                number = int.from_bytes(frame[4:8], "big")
                self.numbers.append(number)
                self.frames.append(frame)
                writer.write(response(number))
        self.ended += 1
        writer.close()

    def close(self) -> None:
        assert self._server is not None
        self._server.close()


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def number(self) -> int:
        """The correlation id of the next response."""
        async with asyncio.timeout(PATIENCE_S):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return int.from_bytes((await self._reader.readexactly(size))[:4], "big")

    async def read(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read(100)


class Lab:
    """A broker, a proxy in front of it, and clients."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.interceptors = Interceptors()
        self.upstream = self.address = Address(HOST, 0)
        self._clients: list[Client] = []
        self.proxies: list[MessageProxy] = []

    async def start(self) -> None:
        self.upstream = await self.broker.start()
        self.address = await self.proxy(self.upstream)

    async def proxy(self, upstream: Address) -> Address:
        proxy = MessageProxy(WAY, upstream, self.interceptors)
        self.proxies.append(proxy)
        return await proxy.start()

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection(*self.address))
        self._clients.append(client)
        return client

    def intercept(self, what: Interception, api: str = "Produce") -> None:
        self.interceptors.add([WAY], Selection([api]), what)

    async def close(self) -> None:
        for client in self._clients:
            client.writer.close()
        for proxy in self.proxies:
            await proxy.close()
        self.broker.close()
        await asyncio.sleep(0)


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    lab = Lab()
    await lab.start()
    yield lab
    await lab.close()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds; the event loop runs in between."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the condition is about another task
            await asyncio.sleep(0)


async def is_reset(reading: Callable[[], Awaitable[object]]) -> bool:
    """Return whether reading from a connection fails, instead of reaching the end."""
    try:
        await reading()
    except asyncio.IncompleteReadError:
        return False
    except ConnectionResetError:
        return True
    return False


async def test_messages_pass(lab: Lab) -> None:
    """Without an interception, requests and responses pass, and so does the client's end."""
    client = await lab.client()
    client.send(request(PRODUCE, 1), request(FETCH, 2))
    assert [await client.number(), await client.number()] == [1, 2]
    client.writer.close()
    await until(lambda: lab.broker.ended == 1)


async def test_a_held_request_and_those_behind_it_wait(lab: Lab) -> None:
    """A request before the held one passes; those behind it arrive after the release."""
    lab.intercept("hold-request")
    client = await lab.client()
    client.send(request(FETCH, 1), request(PRODUCE, 2), request(FETCH, 3))
    assert await client.number() == 1
    await until(lambda: lab.interceptors[0].is_holding)
    assert lab.broker.numbers == [1]
    lab.interceptors[0].release()
    assert [await client.number(), await client.number()] == [2, 3]


async def test_other_connections_do_not_wait(lab: Lab) -> None:
    """While a request is held, another connection of the link carries messages."""
    lab.intercept("hold-request")
    first, second = await lab.client(), await lab.client()
    first.send(request(PRODUCE, 1))
    await until(lambda: lab.interceptors[0].is_holding)
    second.send(request(PRODUCE, 2))
    assert await second.number() == 2


@pytest.mark.parametrize("reset", [False, True])
async def test_a_held_request_is_delivered_although_its_client_is_gone(
    lab: Lab, *, reset: bool
) -> None:
    """The request arrives after its client has closed or reset the connection, and then the end."""
    lab.intercept("hold-request")
    client = await lab.client()
    client.send(request(PRODUCE, 1))
    await until(lambda: lab.interceptors[0].is_holding)
    if reset:
        own = client.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        client.writer.transport.abort()
    else:
        client.writer.close()
    other = await lab.client()
    other.send(request(FETCH, 8))
    assert await other.number() == 8
    assert (lab.broker.numbers, lab.broker.ended) == ([8], 0)
    assert lab.interceptors[0].is_holding
    lab.interceptors[0].release()
    await until(lambda: lab.broker.ended == 1)
    assert lab.broker.numbers == [8, 1]


async def test_a_held_response_is_delivered(lab: Lab) -> None:
    """The held response was executed at once; the responses behind it wait with it."""
    lab.intercept("hold-response")
    client = await lab.client()
    client.send(request(FETCH, 1), request(PRODUCE, 2), request(FETCH, 3))
    assert await client.number() == 1
    await until(lambda: lab.broker.numbers == [1, 2, 3] and lab.interceptors[0].is_holding)
    lab.interceptors[0].release()
    assert [await client.number(), await client.number()] == [2, 3]


async def test_a_held_response_outlives_the_servers_end(lab: Lab) -> None:
    """A response that was held when the server closed the connection is delivered before the
    end."""
    lab.intercept("hold-response")
    client = await lab.client()
    client.send(request(PRODUCE, 1))
    await until(lambda: lab.interceptors[0].is_holding)
    lab.broker.connections[0].close()
    lab.interceptors[0].release()
    assert await client.number() == 1
    assert await client.read() == b""


async def test_a_held_request_is_lost_with_its_server(lab: Lab) -> None:
    """When the server ends the connection, no request is held for it any more."""
    lab.intercept("hold-request")
    client = await lab.client()
    client.send(request(PRODUCE, 1))
    await until(lambda: lab.interceptors[0].is_holding)
    lab.broker.connections[0].close()
    assert await client.read() == b""
    await until(lambda: not lab.interceptors[0].is_holding)


async def test_a_dropped_response_was_executed(lab: Lab) -> None:
    """The request is processed, and the client's connection is reset without its response."""
    lab.intercept("drop-response")
    client = await lab.client()
    client.send(request(PRODUCE, 1))
    assert await is_reset(client.number)
    assert lab.broker.numbers == [1]
    await until(lambda: lab.broker.ended == 1)


async def test_a_dropped_request_does_not_arrive(lab: Lab) -> None:
    """Requests before the dropped one arrive; it does not, and the connection is reset."""
    lab.intercept("drop-request")
    client = await lab.client()
    client.send(request(FETCH, 1))
    assert await client.number() == 1
    client.send(request(PRODUCE, 2), request(FETCH, 3))
    assert await is_reset(client.number)
    await until(lambda: lab.broker.ended == 1)
    assert lab.broker.numbers == [1]


async def test_a_request_is_corrupted(lab: Lab) -> None:
    """One bit differs in the request that arrives."""
    lab.intercept("corrupt-request")
    client = await lab.client()
    client.send(request(PRODUCE, 1), request(PRODUCE, 2))
    assert [await client.number(), await client.number()] == [1, 2]
    sent = [request(PRODUCE, number)[4:] for number in (1, 2)]
    assert lab.broker.frames[1] == sent[1]
    difference = int.from_bytes(lab.broker.frames[0], "big") ^ int.from_bytes(sent[0], "big")
    assert difference.bit_count() == 1


async def test_a_request_is_delivered_twice(lab: Lab) -> None:
    """The server receives the request twice; the client receives one response."""
    lab.intercept("duplicate-request")
    client = await lab.client()
    client.send(request(PRODUCE, 1), request(FETCH, 2))
    assert [await client.number(), await client.number()] == [1, 2]
    assert lab.broker.numbers == [1, 1, 2]


async def test_bytes_that_are_no_messages_pass(lab: Lab) -> None:
    """Bytes of another protocol pass in both directions without waiting for more."""
    lab.intercept("drop-request")
    lab.broker.is_raw = True
    client = await lab.client()
    for word in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"x"):
        client.send(word)
        assert await client.read() == word


async def test_an_incomplete_message_is_passed_on_at_the_end(lab: Lab) -> None:
    """What a client has sent of a message reaches the server when the client closes."""
    lab.broker.is_raw = True
    client = await lab.client()
    client.send(request(FETCH, 1)[:9])
    client.writer.close()
    await until(lambda: lab.broker.ended == 1)
    assert lab.broker.raw == request(FETCH, 1)[:9]


async def test_a_refused_connection_is_reset(lab: Lab) -> None:
    """If no server listens, the client's connection is reset."""
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        lab.address = await lab.proxy(Address(HOST, unused.getsockname()[1]))
        client = await lab.client()
        assert await is_reset(client.read)


async def test_a_reset_connection_is_reset_at_the_client(lab: Lab) -> None:
    """When the server resets its connection, the client's connection is reset."""
    client = await lab.client()
    client.send(request(FETCH, 1))
    assert await client.number() == 1
    own = lab.broker.connections[0].get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    lab.broker.connections[0].transport.abort()
    assert await is_reset(client.read)


async def test_a_held_connection_is_not_read(lab: Lab) -> None:
    """While a request is held, its client can only send until the buffers of the system are
    full."""
    lab.intercept("hold-request")
    client = await lab.client()
    client.send(request(PRODUCE, 1))
    await until(lambda: lab.interceptors[0].is_holding)
    large = request(FETCH, 2, bytes(32 << 20))
    client.send(large)
    draining = asyncio.create_task(client.writer.drain())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not draining.done()
    lab.interceptors[0].release()
    async with asyncio.timeout(PATIENCE_S):
        await draining
        assert [await client.number(), await client.number()] == [1, 2]


async def test_a_closed_proxy_ends_its_connections(lab: Lab) -> None:
    """Closing a proxy ends its connections and its held messages, without an error in the log."""
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
    lab.intercept("hold-request")
    idle, held = await lab.client(), await lab.client()
    idle.send(request(FETCH, 1))
    held.send(request(PRODUCE, 2))
    assert await idle.number() == 1
    await until(lambda: lab.interceptors[0].is_holding)
    await lab.proxies[0].close()
    assert [await idle.read(), await held.read()] == [b"", b""]
    assert not lab.interceptors[0].is_holding
    assert errors == []


@pytest.fixture
async def meshed(lab: Lab, tmp_path: Path) -> AsyncIterator[Mesh]:
    """A mesh with the link of the lab, which the lab's clients enter through a message proxy."""
    server = Process(
        "toxiproxy",
        toxiproxy.command(),
        tmp_path / "toxiproxy",
        Registry("mesh", tmp_path / "state"),
        on_exit=lambda _: None,
        environment=toxiproxy.ENVIRONMENT,
    )
    mesh = Mesh()
    mesh.connect(await toxiproxy.serve(server))
    broker = lab.upstream
    link = await mesh.add(*WAY, broker, past=broker, endpoint=None)
    lab.address = await lab.proxy(link.reached)
    yield mesh
    await server.kill()


needs_toxiproxy = pytest.mark.usefixtures("toxiproxy_server")


@pytest.mark.cluster
@needs_toxiproxy
async def test_a_late_request_passes_toxiproxy(lab: Lab, meshed: Mesh) -> None:
    """Through Toxiproxy, too, a held request arrives after its client has closed."""
    lab.intercept("hold-request")
    client = await lab.client()
    client.send(request(FETCH, 1), request(PRODUCE, 2), request(FETCH, 3))
    await until(lambda: lab.interceptors[0].is_holding)
    client.writer.close()
    other = await lab.client()
    other.send(request(FETCH, 8))
    assert await other.number() == 8
    assert lab.broker.ended == 0
    lab.interceptors[0].release()
    await until(lambda: lab.broker.ended == 1)
    assert sorted(lab.broker.numbers[:2]) == [1, 8]
    assert lab.broker.numbers[2:] == [2, 3]


@pytest.mark.cluster
@needs_toxiproxy
async def test_faults_of_the_link_pass_the_message_proxy(lab: Lab, meshed: Mesh) -> None:
    """A refused link ends the client's connections, and a cut one swallows its requests."""
    client = await lab.client()
    client.send(request(FETCH, 1))
    assert await client.number() == 1
    await meshed.refuse(*WAY)
    with contextlib.suppress(ConnectionResetError):
        assert await client.read() == b""
    assert await is_reset((await lab.client()).read)
    await meshed.accept(*WAY)
    await meshed.cut(*WAY)
    client = await lab.client()
    client.send(request(FETCH, 2))
    await until(lambda: len(lab.broker.connections) == 2)
    await meshed.heal(*WAY)
    with contextlib.suppress(ConnectionResetError):
        assert await client.read() == b""
    client = await lab.client()
    client.send(request(FETCH, 3))
    assert await client.number() == 3
    assert lab.broker.numbers == [1, 3]
