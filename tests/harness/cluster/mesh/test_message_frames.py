"""Messages are found in the bytes of a connection, however these bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.wire.framing import RequestHeader, encode_request, encode_response
from harness.cluster.mesh.message_frames import (
    FLIPPED_FROM_END,
    REQUEST,
    RESPONSE,
    Splitter,
    api_key,
    has_string,
    is_long_enough_to_flip,
    with_flipped_bit,
)

PRODUCE, FETCH = 0, 1
TLS = bytes.fromhex("1603010200010001fc0303") + bytes(range(200))
"""The beginning of a TLS connection."""


def request(key: int, number: int, body: bytes = bytes(20), version: int = 5) -> bytes:
    return b"".join(encode_request(RequestHeader(key, version, number, "c"), [body]))


def response(key: int, number: int, size: int = 20) -> bytes:
    return b"".join(encode_response(key, 5, number, [bytes(size)]))


def runs(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Divide a stream into runs of these sizes, and the remaining bytes."""
    found, at = [], 0
    for size in [*cuts, len(stream)]:
        found.append(stream[at : at + size])
        at += size
    return [run for run in found if run]


def test_apis_have_names() -> None:
    """APIs have Kafka's names; an unknown name is an error."""
    assert (api_key("Produce"), api_key("LeaderAndIsr")) == (0, 4)
    with pytest.raises(ValueError, match="no API is called Sleep"):
        api_key("Sleep")


@given(
    frames=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100), st.integers(0, 300))),
    cuts=st.lists(st.integers(1, 40)),
)
def test_every_message_is_a_piece(frames: list[tuple[int, int, int]], cuts: list[int]) -> None:
    """Every message is one piece with its head, however the stream is divided."""
    messages = [request(key, number, bytes(size)) for key, number, size in frames]
    splitter = Splitter(REQUEST)
    pieces = [piece for run in runs(b"".join(messages), cuts) for piece in splitter.pieces(run)]
    assert [piece.data for piece in pieces] == messages
    heads = [piece.head for piece in pieces if piece.head is not None]
    assert [(key, number) for _, key, _, number in heads] == [frame[:2] for frame in frames]
    assert splitter.rest() == b""


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(1, 40)))
def test_no_byte_is_changed(data: bytes, cuts: list[int]) -> None:
    """Whatever the bytes are, they are passed on unchanged and in order."""
    for head in (REQUEST, RESPONSE):
        splitter = Splitter(head, frame_bytes_max=64)
        pieces = [piece.data for run in runs(data, cuts) for piece in splitter.pieces(run)]
        assert b"".join(pieces) + splitter.rest() == data


@pytest.mark.parametrize(
    "data",
    [
        TLS,
        b"GET / HTTP/1.1\r\n",
        b"\xff" * 50,
        request(FETCH, 1, version=90),
        (7).to_bytes(4, "big") + bytes(20),
    ],
)
def test_what_is_not_kafka_is_not_waited_for(data: bytes) -> None:
    """Bytes of another protocol are passed on as they arrive, and so is all that follows."""
    splitter = Splitter(REQUEST)
    later = request(FETCH, 1)
    pieces = [*splitter.pieces(data), *splitter.pieces(later)]
    assert b"".join(piece.data for piece in pieces) == data + later
    assert {piece.head for piece in pieces} == {None}
    assert splitter.is_raw


def test_a_large_frame_passes_in_parts_and_the_next_one_is_found() -> None:
    """A frame above the limit is not buffered; the message after it is found."""
    large, small = request(PRODUCE, 1, bytes(500)), request(FETCH, 2)
    splitter = Splitter(REQUEST, frame_bytes_max=100)
    first = list(splitter.pieces(large[:40]))
    assert [(len(piece.data), piece.head) for piece in first] == [(40, None)]
    pieces = list(splitter.pieces(large[40:] + small))
    assert [piece.data for piece in pieces] == [large[40:], small]
    assert pieces[1].head == (len(small) - 4, FETCH, 5, 2)


def test_the_rest_is_an_incomplete_message() -> None:
    """At the end of a stream, the incomplete message remains."""
    splitter = Splitter(RESPONSE)
    whole = response(FETCH, 3)
    assert [piece.head for piece in splitter.pieces(whole + whole[:9])] == [(len(whole) - 4, 3)]
    assert splitter.rest() == whole[:9]
    assert splitter.rest() == b""


@given(text=st.text(min_size=1, max_size=200))
def test_strings_of_both_kinds_are_found(text: str) -> None:
    """A string is found with a length of two bytes and as a compact string (KIP-482)."""
    encoded = text.encode()
    count = len(encoded) + 1
    varint = bytes([count]) if count < 128 else bytes([count & 0x7F | 0x80, count >> 7])
    plain = len(encoded).to_bytes(2, "big") + encoded
    assert has_string(request(PRODUCE, 1, b"??" + plain + b"!", version=8), text)
    assert has_string(request(PRODUCE, 1, b"??" + varint + encoded + b"!", version=9), text)


@pytest.mark.parametrize("version", [8, 9])
def test_a_part_of_a_string_is_no_string(version: int) -> None:
    """The name of a group is not found in a longer one, whatever the encoding."""
    name = b"thread-10"
    length = (9).to_bytes(2, "big") if version == 8 else bytes([10])
    frame = request(PRODUCE, 1, length + name, version)
    assert has_string(frame, "thread-10")
    for part in ("thread-1", "thread", "read-10"):
        assert not has_string(frame, part)


def test_one_bit_is_flipped() -> None:
    """One bit near the end of a request is flipped, if the request is long enough."""
    frame = request(PRODUCE, 1)
    changed = with_flipped_bit(frame, -FLIPPED_FROM_END)
    assert int.from_bytes(changed, "big") ^ int.from_bytes(frame, "big") == 1 << 8 * 8
    assert is_long_enough_to_flip(frame)
    assert not is_long_enough_to_flip(frame[:20])
