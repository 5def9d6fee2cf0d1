import asyncio
import dataclasses
import errno
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from broker_impl import config as configuration
from broker_impl.api import registry
from broker_impl.api.services import Services
from broker_impl.errors import ErrorCode, StorageError
from broker_impl.server import Server, listeners
from broker_impl.server.memory_limits import UNREAD_BYTES_MAX
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import response_module
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.api_versions_request import encode as encode_api_versions
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_request import encode as encode_find_coordinator
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse

METADATA, UPDATE_METADATA, FIND_COORDINATOR, VERSIONS = 3, 6, 10, 18


class Client:
    """A client that sends raw frames over a real connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def ask(self, key: str, number: int) -> None:
        """Send a FindCoordinator v1, whose key selects what the test's handler does."""
        header = RequestHeader(FIND_COORDINATOR, 1, number, "test")
        body = encode_find_coordinator(FindCoordinatorRequest(key=key), 1)
        self.writer.write(b"".join(encode_request(header, body)))

    def send(self, api_key: int, version: int, body: bytes = b"") -> None:
        frame = struct.pack(">hhih", api_key, version, 1, -1) + body
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def frame(self) -> memoryview:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return memoryview(await self.reader.readexactly(size))

    async def answer(self) -> int:
        """The correlation id of the next response."""
        number, _ = decode_response(await self.frame(), FIND_COORDINATOR, 1)
        return number

    async def is_closed(self) -> bool:
        try:
            async with asyncio.timeout(5):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


class World:
    """A server with one scripted handler, and its clients."""

    def __init__(self, server: Server, ports: list[int], fatal: list[BaseException]) -> None:
        self.server, self.ports, self.fatal = server, ports, fatal
        self._clients: list[Client] = []

    async def client(self, listener: int = 0) -> Client:
        """Connect to listener 0, for clients, or to listener 1, the brokers' own."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.ports[listener]))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        await self.server.close()
        for client in self._clients:
            client.writer.close()


def answer(key: str) -> Any:
    """Do what the key of the FindCoordinator request selects."""
    if key == "hang up":
        raise registry.CloseConnection("as asked")
    if key == "storage":
        raise StorageError("no space left")
    if key == "bug":
        raise KeyError("bug")
    if key == "large":
        return FindCoordinatorResponse(error_message="x" * 32_000)
    return FindCoordinatorResponse()


@pytest.fixture
def parked(monkeypatch: pytest.MonkeyPatch) -> dict[str, "asyncio.Future[Any]"]:
    """Futures of the requests whose key begins with ``park``; ``slow`` ones are coroutines."""
    futures: dict[str, asyncio.Future[Any]] = {}

    def handle(context: registry.RequestContext, request: FindCoordinatorRequest) -> Any:
        if request.key.startswith(("park", "slow")):
            future = futures[request.key] = asyncio.get_running_loop().create_future()
            return future if request.key.startswith("park") else wait(future)
        return answer(request.key)

    async def wait(future: "asyncio.Future[Any]") -> Any:
        return await future

    row = registry.Api(FIND_COORDINATOR, range(3), range(3), False, handle)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    return futures


Open = Callable[..., Any]


@pytest.fixture
async def world() -> AsyncIterator[Open]:
    """A context manager that starts a server with the given settings."""
    worlds: list[World] = []

    @asynccontextmanager
    async def start(*, gate: bool = True, **settings: Any) -> AsyncIterator[World]:
        given = {name.replace("_", "."): str(value) for name, value in settings.items()}
        config = configuration.parse(
            {
                "broker.id": "1",
                "zookeeper.connect": "h:1",
                "listeners": "CLIENT://127.0.0.1:0,PRIVATE://127.0.0.1:0",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,PRIVATE:PLAINTEXT",
                "inter.broker.listener.name": "PRIVATE",
            }
            | given
        )
        fatal: list[BaseException] = []
        services = cast(Services, SimpleNamespace(config=config))
        server = Server(services, config, fatal.append)
        ports = [(await server.listen(endpoint)).port for endpoint in config.endpoints()]
        if gate:
            server.open_to_brokers()
            server.open_to_clients()
        worlds.append(World(server, ports, fatal))
        yield worlds[-1]

    yield start
    for item in worlds:
        await item.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(0.005)


async def settle() -> None:
    """Let the event loop deliver everything that is in flight over loopback."""
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_answers_come_in_the_order_of_requests(world: Open, parked: Any) -> None:
    """A parked request keeps its place among the responses, while later requests are handled."""
    async with world() as w:
        client = await w.client()
        client.ask("park", 1)
        client.ask("now", 2)
        client.ask("park2", 3)
        await settle()
        assert set(parked) == {"park", "park2"}
        parked["park2"].set_result(FindCoordinatorResponse())
        parked["park"].set_result(FindCoordinatorResponse())
        assert [await client.answer() for _ in range(3)] == [1, 2, 3]


async def test_a_coroutine_holds_up_what_is_behind_it(world: Open, parked: Any) -> None:
    """A handler that is a coroutine blocks the next requests of its connection."""
    async with world() as w:
        client = await w.client()
        client.ask("slow1", 1)
        client.ask("slow2", 2)
        await settle()
        assert set(parked) == {"slow1"}
        parked["slow1"].set_result(FindCoordinatorResponse())
        await settle()
        assert set(parked) == {"slow1", "slow2"}
        parked["slow2"].set_result(FindCoordinatorResponse())
        assert [await client.answer(), await client.answer()] == [1, 2]


async def test_a_coroutine_may_park_its_answer(world: Open, parked: Any) -> None:
    """A coroutine may return a future, which no longer blocks later requests.

    Its response keeps its place.
    """
    async with world() as w:
        client = await w.client()
        client.ask("slow1", 1)
        client.ask("slow2", 2)
        await settle()
        later = asyncio.get_running_loop().create_future()
        parked["slow1"].set_result(later)
        await settle()
        assert set(parked) == {"slow1", "slow2"}
        parked["slow2"].set_result(FindCoordinatorResponse())
        await settle()
        later.set_result(FindCoordinatorResponse())
        assert [await client.answer(), await client.answer()] == [1, 2]


@pytest.mark.parametrize(
    "rubbish",
    [
        struct.pack(">i", 2**31 - 1) + b"x" * 100,
        struct.pack(">i", -5),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 4, 4, 1, -1),
        struct.pack(">ihhih", 10, 10, 77, 1, -1),
        struct.pack(">ihhihhh", 14, 10, 1, 1, -1, 30000, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["huge", "negative", "short", "unknown", "private", "version", "length", "http"],
)
async def test_garbage_ends_its_connection_only(
    world: Open, parked: Any, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes that are not a request close their connection with a logged reason; others continue."""
    async with world() as w:
        good, bad = await w.client(), await w.client()
        bad.writer.write(rubbish)
        assert await bad.is_closed()
        assert " closed: " in caplog.text
        good.ask("now", 7)
        assert await good.answer() == 7
        assert not w.fatal


async def test_too_new_api_versions_are_answered_in_v0(world: Open) -> None:
    """KIP-511: an unknown version of ApiVersions gets error 35 in v0, with the known versions."""
    async with world() as w:
        client = await w.client()
        client.send(VERSIONS, 9, b"\0")
        _, body = decode_response(await client.frame(), VERSIONS, 0)
        response = response_module(VERSIONS).decode(body, 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        ranges = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        assert ranges[VERSIONS] == (0, 3)
        assert ranges[0] == (0, 9)
        assert not ranges.keys() & {4, 5, 6, 7}, "private APIs are no client's business"


async def test_a_client_must_have_a_proper_name(world: Open) -> None:
    """KIP-511: ApiVersions v3 with a malformed software name is INVALID_REQUEST."""
    async with world() as w:
        client = await w.client()
        request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
        header = RequestHeader(VERSIONS, 3, 1, None)
        client.writer.write(b"".join(encode_request(header, encode_api_versions(request, 3))))
        _, body = decode_response(await client.frame(), VERSIONS, 3)
        response = response_module(VERSIONS).decode(body, 3)
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_handler_may_hang_up(world: Open, parked: Any) -> None:
    """A handler may close the connection, which is the only way to report an error to acks=0."""
    async with world() as w:
        client = await w.client()
        client.ask("hang up", 1)
        assert await client.is_closed()


async def test_a_bug_in_a_handler_ends_one_connection(world: Open, parked: Any) -> None:
    """An unexpected exception in a handler closes its connection only, with a log record."""
    async with world() as w:
        bad, good = await w.client(), await w.client()
        bad.ask("bug", 1)
        assert await bad.is_closed()
        good.ask("now", 2)
        assert await good.answer() == 2
        assert not w.fatal


async def test_a_storage_failure_ends_the_broker(world: Open, parked: Any) -> None:
    """A storage error in a handler ends the broker."""
    async with world() as w:
        client = await w.client()
        client.ask("storage", 1)
        await settle()
        assert [str(error) for error in w.fatal] == ["no space left"]


async def test_a_lost_connection_cancels_its_parked_requests(world: Open, parked: Any) -> None:
    """A lost connection cancels its parked requests."""
    async with world() as w:
        client = await w.client()
        client.ask("park", 1)
        await settle()
        client.writer.transport.abort()
        await settle()
        assert parked["park"].cancelled()
        assert w.server.bounds.request_bytes == 0


async def test_clients_wait_behind_the_gate(world: Open, parked: Any) -> None:
    """Clients are not served until the cluster is known; before, it would look empty."""
    async with world(gate=False) as w:
        client = await w.client()
        client.ask("park", 1)
        await settle()
        assert not parked
        w.server.open_to_clients()
        await settle()
        parked["park"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 1


async def test_connections_are_bounded(world: Open, parked: Any) -> None:
    """max.connections: a further connection is refused, until another one closes."""
    async with world(max_connections=2) as w:
        first, second, third = [await w.client() for _ in range(3)]
        assert await third.is_closed()
        first.writer.close()
        await settle()
        fourth = await w.client()
        fourth.ask("now", 4)
        assert await fourth.answer() == 4
        second.ask("now", 5)
        assert await second.answer() == 5


async def test_requests_in_memory_are_bounded(world: Open, parked: Any) -> None:
    """queued.max.request.bytes: beyond it no requests are read until others are handled."""
    async with world(queued_max_request_bytes=1) as w:
        first, second = await w.client(), await w.client()
        first.ask("slow1", 1)
        await settle()
        second.ask("now", 2)
        assert await second.answer() == 2  # it was read before the limit was noticed
        second.ask("now", 3)
        await settle()
        assert w.server.bounds.is_full
        assert not second.reader._buffer
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert await second.answer() == 3
        assert await first.answer() == 1
        assert w.server.bounds.request_bytes == 0


async def test_what_is_parked_holds_no_memory(world: Open, parked: Any) -> None:
    """Parked requests do not count: a parked produce needs the followers' fetches."""
    async with world(queued_max_request_bytes=1) as w:
        first, second = await w.client(), await w.client()
        first.ask("park1", 1)
        await settle()
        for number in (2, 3):
            second.ask("now", number)
            assert await second.answer() == number
        parked["park1"].set_result(FindCoordinatorResponse())
        assert await first.answer() == 1


async def test_a_thousand_starved_connections_go_on_one_after_the_other(
    world: Open, parked: Any
) -> None:
    """Hundreds of waiting connections resume one after the other, without recursion."""
    async with world(queued_max_request_bytes=1) as w:
        first, others = await w.client(), [await w.client() for _ in range(400)]
        first.ask("slow1", 1)
        await settle()
        for client in others:
            client.ask("now", 2)
            assert await client.answer() == 2
            client.ask("now", 3)
        await settle()
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert {await client.answer() for client in others} == {3}
        assert not w.fatal


async def test_brokers_are_not_crowded_out_by_clients(world: Open, parked: Any) -> None:
    """KIP-402: at max.connections a broker is admitted, and the idlest client is closed."""
    async with world(max_connections=2, queued_max_request_bytes=1) as w:
        busy, idle = await w.client(), await w.client()
        busy.ask("slow1", 1)
        await settle()
        broker = await w.client(1)
        assert await idle.is_closed()
        for number in (2, 3):  # nor do the bytes of clients delay it
            broker.ask("now", number)
            assert await broker.answer() == number
        second = await w.client(1)
        second.ask("now", 4)
        assert await second.answer() == 4
        assert await busy.is_closed()
        third = await w.client(1)
        assert await third.is_closed(), "no client is left to make room"


async def test_one_of_many_pipelined_requests_is_no_privilege(world: Open, parked: Any) -> None:
    """A client with thousands of pipelined requests does not starve other clients."""
    async with world() as w:
        greedy, modest = await w.client(), await w.client()
        for number in range(3000):
            greedy.ask("now", number)
        modest.ask("now", 1)
        assert await modest.answer() == 1
        assert len(greedy.reader._buffer) < 3000 * 30, "all of it was answered first"
        assert [await greedy.answer() for _ in range(3000)] == list(range(3000))


async def test_a_burst_of_connections_is_accepted_little_by_little(
    world: Open, parked: Any
) -> None:
    """A client is answered while hundreds of connections wait to be accepted."""
    count = 300
    async with world() as w:
        client = await w.client()
        client.ask("now", 1)
        assert await client.answer() == 1
        with ExitStack() as sockets:
            for _ in range(count):
                burst = sockets.enter_context(socket.socket())
                burst.setblocking(False)
                assert burst.connect_ex(("127.0.0.1", w.ports[0])) in (0, errno.EINPROGRESS)
            client.ask("now", 2)
            assert await client.answer() == 2
            assert len(w.server._connections) < count // 2
            await until(lambda: len(w.server._connections) == count + 1)


async def test_a_fetch_holds_up_what_is_behind_it(
    world: Open, parked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API that blocks its connection, such as Fetch, parks one request per connection."""
    row = dataclasses.replace(registry.APIS[FIND_COORDINATOR], holds_line=True)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    async with world() as w:
        client = await w.client()
        for number in (1, 2):
            client.ask(f"park{number}", number)
        await settle()
        assert set(parked) == {"park1"}
        parked["park1"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 1
        await settle()
        assert set(parked) == {"park1", "park2"}
        parked["park2"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 2


@pytest.mark.parametrize(("error", "fatal"), [(StorageError("full"), 1), (KeyError("bug"), 0)])
@pytest.mark.parametrize("kind", ["park", "slow"])
async def test_late_failures_are_treated_like_early_ones(
    world: Open, parked: Any, kind: str, error: Exception, fatal: int
) -> None:
    """A parked or slow request that fails closes its connection, or ends the broker."""
    async with world() as w:
        client = await w.client()
        client.ask(kind, 1)
        await settle()
        parked[kind].set_exception(error)
        await settle()
        assert len(w.fatal) == fatal
        assert fatal or await client.is_closed()


async def test_a_reader_that_never_reads_is_let_go(world: Open, parked: Any) -> None:
    """connections.max.idle.ms closes a connection whose client does not read its responses."""
    async with world(connections_max_idle_ms=300) as w:
        client = await w.client()
        cast(asyncio.Transport, client.writer.transport).pause_reading()
        for number in range(1000):
            client.ask("large", number)
        await until(lambda: w.server.bounds.answer_room() < UNREAD_BYTES_MAX)
        await until(lambda: not w.server._connections)
        assert w.server.bounds.answer_room() == UNREAD_BYTES_MAX


async def test_nobody_is_served_before_the_broker_is_ready(world: Open, parked: Any) -> None:
    """Brokers are served once this broker has registered, clients once it knows the cluster."""
    async with world(gate=False) as w:
        broker, client = await w.client(1), await w.client()
        broker.ask("now", 1)
        client.ask("now", 2)
        await settle()
        w.server.open_to_brokers()
        assert await broker.answer() == 1
        broker.send(METADATA, 1, struct.pack(">i", 0))
        await settle()
        assert not client.reader._buffer
        assert not broker.reader._buffer
        w.server.open_to_clients()
        assert await client.answer() == 2


async def test_idle_connections_are_closed(world: Open, parked: Any) -> None:
    """connections.max.idle.ms: an idle connection is closed, not one that awaits a response."""
    async with world(connections_max_idle_ms=40) as w:
        idle, busy = await w.client(), await w.client()
        busy.ask("park", 1)
        assert await idle.is_closed()
        parked["park"].set_result(FindCoordinatorResponse())
        assert await busy.answer() == 1


def large_request(size: int, api_key: int = VERSIONS) -> bytes:
    """A frame of about this size: ApiVersions v3 with an unknown tagged field."""
    tag = b"\x02a\x02b\x01\x07" + encode_uvarint(size) + bytes(size)
    frame = struct.pack(">hhih", api_key, 3, 1, -1) + b"\0" + tag
    return struct.pack(">i", len(frame)) + frame


def encode_uvarint(number: int) -> bytes:
    """Encode an unsigned varint: seven bits per byte, lowest first."""
    coded = b""
    while number > 0x7F:
        coded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return coded + bytes([number])


async def arrived(w: World) -> int:
    """The bytes of requests in memory, once no more are being read."""
    before = -1
    while (now := w.server.bounds.request_bytes) != before:
        before = now
        for _ in range(20):
            await settle()
    return before


@pytest.mark.parametrize(
    ("count", "size", "most"),
    [(8, 4 << 20, 9 << 20), (60, 1 << 20, 34 << 20)],
    ids=["large", "ordinary"],
)
async def test_unfinished_frames_are_bounded_and_all_are_finished(
    world: Open, count: int, size: int, most: int
) -> None:
    """The memory of unfinished frames is bounded, and every frame is finished in the end.

    Meanwhile ordinary requests are answered.
    """
    async with world(socket_request_max_bytes=5 << 20) as w:
        frame = large_request(size)
        clients = [await w.client() for _ in range(count)]
        for client in clients:
            client.writer.write(frame[: size - 1000])
        assert await arrived(w) <= most
        other = await w.client()
        other.send(VERSIONS, 0)
        async with asyncio.timeout(5):
            await other.frame()
        for client in reversed(clients):
            client.writer.write(frame[size - 1000 :])
        async with asyncio.timeout(20):
            for client in clients:
                await client.frame()
        assert w.server.bounds.request_bytes == 0
        assert not w.server.is_crowded()


@pytest.mark.parametrize("shares", [True, False], ids=["shared listener", "own listener"])
async def test_frames_of_clients_do_not_keep_out_those_of_brokers(
    world: Open, shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker's frame is read while clients' frames occupy their memory, large or ordinary."""
    monkeypatch.setattr(listeners, "ORDINARY_ROOM", 1 << 20)
    one = {"listeners": "CLIENT://127.0.0.1:0", "inter_broker_listener_name": "CLIENT"}
    settings = one if shares else {}
    async with world(socket_request_max_bytes=5 << 20, **settings) as w:
        for size in (4 << 20, 1 << 20):
            for _ in range(2):
                client = await w.client()
                client.writer.write(large_request(size)[:-1000])
        await arrived(w)
        assert w.server.is_crowded()
        for size in (4 << 20, 1 << 20):
            broker = await w.client(0 if shares else 1)
            broker.writer.write(large_request(size, UPDATE_METADATA))
            assert await broker.is_closed(), "it is read, and its version is not served"


async def test_a_frame_behind_a_slow_request_holds_no_room(world: Open, parked: Any) -> None:
    """A frame behind a slow request reserves no memory before its connection is read again."""
    async with world(socket_request_max_bytes=5 << 20) as w:
        slow, other = await w.client(), await w.client()
        slow.ask("slow1", 1)
        slow.ask("now", 2)
        slow.writer.write(large_request(4 << 20)[:-1000])
        await arrived(w)
        other.writer.write(large_request(4 << 20))
        async with asyncio.timeout(5):
            await other.frame()
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert [await slow.answer(), await slow.answer()] == [1, 2]


async def test_a_lost_connection_gives_its_room_to_the_next(world: Open) -> None:
    """A closed connection frees its memory for the next frame, and its place in the queue."""
    async with world(socket_request_max_bytes=5 << 20) as w:
        first, second, third = [await w.client() for _ in range(3)]
        for client in (first, second, third):
            client.writer.write(large_request(4 << 20)[:-1000])
            await arrived(w)
        second.writer.transport.abort()
        first.writer.transport.abort()
        third.writer.write(bytes(1000))
        async with asyncio.timeout(5):
            await third.frame()
        await until(lambda: w.server.bounds.request_bytes == 0)


@pytest.mark.slow
async def test_many_connections_and_slow_ones_stay_small(world: Open) -> None:
    """1,000 idle connections, each with a 100 MB frame announced, cost less than 64 MB."""
    async with world() as w:
        rss = psutil.Process().memory_info().rss
        clients = [await w.client() for _ in range(1000)]
        for client in clients:
            client.writer.write(struct.pack(">i", 100 * 1024 * 1024) + b"x")
        await settle()
        grown = psutil.Process().memory_info().rss - rss
        # Both ends of each connection are in this process.
        assert grown < 64 * 1024 * 1024, f"{grown >> 20} MB"


async def test_connections_are_counted_as_they_come(
    world: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are numbered as they arrive, so that a handler knows which of two is later."""
    seen: list[int] = []

    def handle(context: registry.RequestContext, request: FindCoordinatorRequest) -> Any:
        seen.append(context.connection)
        return FindCoordinatorResponse()

    row = registry.Api(FIND_COORDINATOR, range(3), range(3), False, handle)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    async with world() as w:
        first = await w.client()
        first.ask("now", 1)
        await first.answer()
        second = await w.client()
        for client in (second, first):
            client.ask("now", 2)
            await client.answer()
    before, later, again = seen
    assert before == again < later
