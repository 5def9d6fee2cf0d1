"""An interception catches the first selected message of its links, and no other."""

import asyncio
import contextlib

import pytest

from harness.cluster.mesh import message_frames
from harness.cluster.mesh.message_frames import REQUEST, RESPONSE, Piece
from harness.cluster.mesh.message_interception import (
    Conversation,
    Hold,
    Interceptors,
    Pass,
    Reset,
    Verdict,
)
from model.capabilities.network import Interception, Selection

WAY = ("clients", "broker-1")
OTHER_WAY = ("clients", "broker-2")
PRODUCE, FETCH = 0, 1


def request(key: int, number: int, body: bytes = bytes(20)) -> Piece:
    head = (8 + len(body), key, 5, number)
    return Piece(REQUEST.pack(*head) + body, head)


def response(number: int) -> Piece:
    head = (14, number)
    return Piece(RESPONSE.pack(*head) + bytes(10), head)


def waiting(what: Interception, *apis: str, naming: str | None = None) -> Interceptors:
    """Interceptors of which the first waits for a message on the link."""
    interceptors = Interceptors()
    interceptors.add([WAY], Selection(apis or ("Produce",), naming), what)
    return interceptors


def passed(piece: Piece) -> Verdict:
    return Pass(piece.data)


def test_a_request_is_held_and_no_other() -> None:
    """The first request of the API is caught; those before, after and elsewhere pass."""
    interceptors = waiting("hold-request")
    here, there = Conversation(WAY, interceptors), Conversation(OTHER_WAY, interceptors)
    produce = request(PRODUCE, 2)
    assert there.request(produce) == passed(produce)
    assert here.request(request(FETCH, 1)) == passed(request(FETCH, 1))
    assert interceptors[0].caught is None
    assert here.request(produce) == Hold(produce.data, interceptors[0])
    assert interceptors[0].caught == "Produce of clients to broker-1"
    assert interceptors[0].is_holding
    assert here.request(request(PRODUCE, 3)) == passed(request(PRODUCE, 3))


@pytest.mark.parametrize("what", ["hold-response", "drop-response"])
def test_the_response_to_a_request_is_caught(what: Interception) -> None:
    """The request passes; the response with its correlation id is caught."""
    interceptors = waiting(what, "Fetch", "Produce")
    conversation = Conversation(WAY, interceptors)
    assert conversation.response(response(7)) == passed(response(7))
    assert conversation.request(request(PRODUCE, 7)) == passed(request(PRODUCE, 7))
    assert conversation.response(response(6)) == passed(response(6))
    verdict = conversation.response(response(7))
    held = Hold(response(7).data, interceptors[0])
    assert verdict == (held if what == "hold-response" else Reset())
    assert interceptors[0].caught == "Produce of clients to broker-1"


def test_a_request_is_dropped() -> None:
    """A dropped request ends its connection."""
    conversation = Conversation(WAY, waiting("drop-request"))
    assert conversation.request(request(PRODUCE, 1)) == Reset()


def test_a_bit_is_flipped() -> None:
    """A request that is too short to flip a bit behind its head passes."""
    interceptors = waiting("corrupt-request")
    conversation = Conversation(WAY, interceptors)
    short = request(PRODUCE, 1, b"abc")
    assert conversation.request(short) == passed(short)
    produce = request(PRODUCE, 2)
    flipped = message_frames.with_flipped_bit(produce.data, -9)
    assert conversation.request(produce) == Pass(flipped)
    assert not interceptors[0].is_holding


def test_a_request_is_delivered_twice_and_answered_once() -> None:
    """The second response to a repeated request is removed; later ones with its id pass."""
    conversation = Conversation(WAY, waiting("duplicate-request"))
    produce = request(PRODUCE, 4)
    assert conversation.request(produce) == Pass(produce.data * 2)
    verdicts = [conversation.response(response(number)) for number in (4, 4, 5, 4)]
    assert verdicts == [passed(response(4)), Pass(b""), passed(response(5)), passed(response(4))]


def test_only_a_request_that_names_the_string_is_caught() -> None:
    """With ``naming``, requests of the API that do not contain the string pass."""
    conversation = Conversation(WAY, waiting("drop-request", naming="thread-1"))
    other = request(PRODUCE, 1, b"\0\tthread-10")
    assert conversation.request(other) == passed(other)
    assert conversation.request(request(PRODUCE, 2, b"\0\bthread-1")) == Reset()


def test_what_is_released_catches_nothing() -> None:
    """After its release an interception catches neither requests nor awaited responses."""
    interceptors = waiting("drop-response")
    conversation = Conversation(WAY, interceptors)
    conversation.request(request(PRODUCE, 1))
    interceptors.release_all()
    assert conversation.response(response(1)) == passed(response(1))
    assert conversation.request(request(PRODUCE, 2)) == passed(request(PRODUCE, 2))
    assert interceptors[0].caught is None


def test_bytes_that_are_no_message_pass() -> None:
    """Bytes of another protocol are never caught."""
    conversation = Conversation(WAY, waiting("drop-request"))
    assert conversation.request(Piece(b"x", None)) == Pass(b"x")
    assert conversation.response(Piece(b"x", None)) == Pass(b"x")


def test_an_unknown_api_is_an_error() -> None:
    """An interception cannot wait for an API that does not exist."""
    with pytest.raises(ValueError, match="no API is called Sleep"):
        waiting("drop-request", "Sleep")


async def test_a_hold_lasts_until_the_release() -> None:
    """A held message is on its way again as soon as it is released."""
    interceptors = waiting("hold-request")
    Conversation(WAY, interceptors).request(request(PRODUCE, 1))
    holding = asyncio.create_task(interceptors[0].hold())
    await asyncio.sleep(0)
    assert not holding.done()
    interceptors[0].release()
    assert not interceptors[0].is_holding
    await holding


async def test_what_cannot_be_delivered_is_not_held() -> None:
    """When the connection of a held message ends, no message is held any more."""
    interceptors = waiting("hold-response")
    conversation = Conversation(WAY, interceptors)
    conversation.request(request(PRODUCE, 1))
    conversation.response(response(1))
    holding = asyncio.create_task(interceptors[0].hold())
    await asyncio.sleep(0)
    holding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holding
    assert not interceptors[0].is_holding
