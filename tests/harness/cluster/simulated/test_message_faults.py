"""Message faults: frames are found in a stream, and one is held, lost, changed or repeated."""

import asyncio
from collections.abc import Iterator

import pytest

from broker_impl.wire.framing import RequestHeader, encode_request, encode_response
from harness.cluster.simulated.message_faults import Messages
from harness.simulation.world import World
from model.capabilities.network import Interception, Selection

PORT = 9092
PRODUCE, FETCH = 0, 1


def request(key: int, number: int, size: int = 20) -> bytes:
    return b"".join(encode_request(RequestHeader(key, 5, number, "c"), [bytes(size)]))


def response(key: int, number: int, size: int = 20) -> bytes:
    return b"".join(encode_response(key, 5, number, [bytes(size)]))


class Talk:
    """A client that sends three requests and a server that answers, with what each has seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: list[tuple[int, float]] = []
        self.asked: list[tuple[int, float]] = []
        self.frames: list[bytes] = []
        self.reset = False

    async def serve(self) -> None:
        server = await asyncio.start_server(self._answer, "0.0.0.0", PORT)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                number = int.from_bytes(frame[4:8], "big")
                self.asked.append((number, self.world.now))
                self.frames.append(frame)
                writer.write(response(frame[1], number))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def ask(self) -> None:
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("server", PORT)
        writer.write(request(FETCH, 1) + request(PRODUCE, 2) + request(PRODUCE, 3))
        try:
            for _ in range(3):
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                self.answers.append((int.from_bytes(frame[:4], "big"), self.world.now))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.reset = True
        writer.close()


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as world:
        yield world


def talk(world: World, what: Interception, naming: str | None = None) -> tuple[Talk, Messages]:
    """Trap the first Produce, release it after two seconds, and return what both ends have seen."""
    client, server = world.host("client"), world.host("server")
    talk, messages = Talk(world), Messages(world.network)
    number = messages.trap([("client", "server")], Selection(["Produce"], naming), what)
    server.spawn(talk.serve)

    async def main() -> None:
        asking = client.spawn(talk.ask)
        await asyncio.sleep(2.0)
        assert messages[number].caught == "Produce of client to server"
        messages[number].open()
        assert not messages[number].is_holding
        await asking.ended()

    world.run(client.spawn(main))
    return talk, messages


def test_a_request_is_kept(world: World) -> None:
    """Requests before the held one pass; those behind it wait with it."""
    seen, _ = talk(world, "hold-request")
    assert [number for number, _ in seen.asked] == [1, 2, 3]
    assert [at > 2.0 for _, at in seen.asked] == [False, True, True]


def test_an_answer_is_kept(world: World) -> None:
    """A held response was executed at once; the responses behind it wait with it."""
    seen, _ = talk(world, "hold-response")
    assert all(at < 1.0 for _, at in seen.asked)
    assert [(number, at > 2.0) for number, at in seen.answers] == [(1, False), (2, True), (3, True)]


def test_an_answer_is_lost(world: World) -> None:
    """A dropped response was executed; its connection is reset."""
    seen, _ = talk(world, "drop-response")
    assert [number for number, _ in seen.asked][:2] == [1, 2]
    assert 2 not in [number for number, _ in seen.answers]
    assert seen.reset


def test_a_request_is_not_what_it_was(world: World) -> None:
    """A corrupted request has one flipped bit near its end; all other frames are unchanged."""
    seen, _ = talk(world, "corrupt-request")
    sent = [request(FETCH, 1)[4:], request(PRODUCE, 2)[4:], request(PRODUCE, 3)[4:]]
    assert [len(frame) for frame in seen.frames] == [len(frame) for frame in sent]
    assert (seen.frames[0], seen.frames[2]) == (sent[0], sent[2])
    flipped = int.from_bytes(seen.frames[1], "big") ^ int.from_bytes(sent[1], "big")
    assert flipped == 1 << 8 * 8
    assert [number for number, _ in seen.answers] == [1, 2, 3]


def test_a_request_is_lost(world: World) -> None:
    """A dropped request does not arrive; its connection is reset."""
    seen, _ = talk(world, "drop-request")
    assert (seen.asked, seen.reset) == ([], True), "all requests were sent at once"


def test_a_request_is_delivered_twice(world: World) -> None:
    """A repeated request is executed twice, and its client receives one response."""
    seen, _ = talk(world, "duplicate-request")
    assert [number for number, _ in seen.asked] == [1, 2, 2, 3]
    assert [number for number, _ in seen.answers] == [1, 2, 3]
    link = world.network.link("client", "server")
    assert (link.taps, link.back.taps) == ([], [])


def test_a_request_is_selected_by_a_string_in_it(world: World) -> None:
    """With ``naming``, the first request of the API that contains the string is caught."""
    seen, _ = talk(world, "hold-request", naming="c")
    assert [at > 2.0 for _, at in seen.asked] == [False, True, True]


def test_a_request_without_the_string_passes(world: World) -> None:
    """With ``naming``, requests of the API that do not contain the string are not caught."""
    client, server = world.host("client"), world.host("server")
    seen, messages = Talk(world), Messages(world.network)
    messages.trap([("client", "server")], Selection(["Produce"], "d"), "drop-request")
    server.spawn(seen.serve)
    world.run(client.spawn(seen.ask))
    assert [number for number, _ in seen.answers] == [1, 2, 3]
    assert messages[0].caught is None


def test_links_are_left_clean(world: World) -> None:
    """After `open_all` no tap is left on a link, whether anything was caught or not."""
    world.host("client")
    world.host("server")
    messages = Messages(world.network)
    messages.trap([("client", "server")], Selection(["Fetch"]), "drop-response")
    link = world.network.link("client", "server")
    assert (len(link.taps), len(link.back.taps)) == (1, 1)
    messages.open_all()
    assert (link.taps, link.back.taps) == ([], [])
