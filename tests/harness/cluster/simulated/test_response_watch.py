"""The order of responses is judged from the bytes on the connections to brokers."""

import asyncio
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from broker_impl.wire.framing import RequestHeader, encode_request, encode_response
from checkers.invariants.response_order import HANDSHAKE
from harness.cluster.simulated.message_faults import Messages
from harness.cluster.simulated.response_watch import ResponseWatch
from harness.simulation.interceptors import Connection, Run
from harness.simulation.segment import Address
from harness.simulation.world import World
from model.capabilities.network import Interception, Selection

PORT = 9092
PRODUCE, FETCH = 0, 1
TOKEN = b"\x00\x00\x00\x09not frame"


def request(key: int, number: int, version: int = 5) -> bytes:
    return b"".join(encode_request(RequestHeader(key, version, number, "c"), [bytes(20)]))


def response(number: int) -> bytes:
    return b"".join(encode_response(FETCH, 5, number, [bytes(20)]))


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as world:
        yield world


def found(
    world: World,
    asked: bytes,
    answered: bytes,
    *,
    server: str = "broker-2",
    piece: int = 1000,
    trap: Interception | None = None,
) -> Sequence[tuple[int, str]]:
    """Return what is found if a server sends this once it has received what a client sends."""
    seen: list[tuple[int, str]] = []
    world.network.watch = ResponseWatch(lambda broker, why: seen.append((broker, why)))
    clients, there = world.host("clients"), world.host(server)
    if trap is not None:
        ways = [("clients", server)]
        Messages(world.network).trap(ways, Selection(["Fetch"], None), trap)
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(asked))
        for at in range(0, len(answered), piece):
            writer.write(answered[at : at + piece])
            await asyncio.sleep(0.01)
        done.set()

    async def serve() -> None:
        async with await asyncio.start_server(answer, "0.0.0.0", PORT) as listening:
            await listening.serve_forever()

    async def main() -> None:
        await asyncio.sleep(0.1)
        _, writer = await asyncio.open_connection(server, PORT)
        for at in range(0, len(asked), piece):
            writer.write(asked[at : at + piece])
            await asyncio.sleep(0.01)
        await asyncio.sleep(5.0)

    there.spawn(serve)
    world.run(clients.spawn(main))
    assert done.is_set()
    return seen


BROKER = "broker-1"
RUN = {"connection": Connection(Address("1.1.1.1", 50_000), Address("1.1.1.2", PORT))}
TWO = request(FETCH, 1) + request(FETCH, 2)
OVERTAKING = response(2) + response(1)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_a_response_that_overtakes_is_found(world: World, piece: int) -> None:
    """The broker and its client are named, however the bytes arrive; it is reported once."""
    why = "on the connection of clients, request 2 was answered before the earlier request 1"
    assert found(world, TWO, OVERTAKING, piece=piece) == [(2, f"{why} of API 1")]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_responses_in_order_are_not(world: World, piece: int) -> None:
    """Responses in the order of the requests are correct."""
    assert found(world, TWO, response(1) + response(2), piece=piece) == []


def test_only_connections_to_brokers_are_judged(world: World) -> None:
    """Other servers have other protocols."""
    assert found(world, TWO, OVERTAKING, server="zookeeper") == []


def test_connections_are_forgotten() -> None:
    """At its end, a connection is forgotten: another one may have the same ports later."""
    seen: list[str] = []
    watch = ResponseWatch(lambda _, why: seen.append(why))
    there = {"to_server": True, "source": "clients", "target": BROKER}
    back = {"to_server": False, "source": BROKER, "target": "clients"}
    for data in (request(FETCH, 1), b"", request(FETCH, 2)):
        watch(cast(Run, SimpleNamespace(**RUN, **there, data=data)))
    watch(cast(Run, SimpleNamespace(**RUN, **back, data=response(2))))
    assert seen == []


@pytest.mark.parametrize("first", [request(HANDSHAKE, 1, 0), TOKEN], ids=["handshake", "token"])
def test_tokens_without_a_header_are_not_judged(world: World, first: bytes) -> None:
    """After SaslHandshake v0, and on a connection with something else, nothing is a frame."""
    assert found(world, first + TWO, OVERTAKING) == []


def test_a_request_that_was_delivered_twice_has_two_responses(world: World) -> None:
    """What the broker received and sent counts, not what its client sent and received."""
    asked = request(FETCH, 1) + request(PRODUCE, 2)
    answered = response(1) + response(1) + response(2)
    assert found(world, asked, answered, trap="duplicate-request") == []


def test_a_request_that_was_delivered_once_has_one_response(world: World) -> None:
    """A second response to a request is an error of the broker."""
    asked = request(FETCH, 1) + request(PRODUCE, 2)
    answered = response(1) + response(1) + response(2)
    why = "on the connection of clients, the response 1 belongs to no open request"
    assert found(world, asked, answered) == [(2, why)]
