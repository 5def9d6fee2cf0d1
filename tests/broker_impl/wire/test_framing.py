"""Frames are read from bytes in any portions, and headers of every version round-trip."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import FrameTooLarge, WireError
from broker_impl.wire.framing import (
    FrameReader,
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)

SCRATCH = bytearray(1 << 16)
BODY = memoryview(b"body")


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def received(reader: FrameReader, portion: bytes) -> None:
    reader.receive(portion)


def buffered(reader: FrameReader, portion: bytes) -> None:
    """Feed bytes as asyncio feeds a `BufferedProtocol`, never more than the buffer has room for."""
    while portion:
        room = reader.get_buffer()
        count = min(len(room), len(portion))
        room[:count] = portion[:count]
        reader.buffer_updated(count)
        portion = portion[count:]


def portions(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


@pytest.mark.parametrize("feed", [received, buffered])
def test_every_cut_gives_the_same_frames(feed: Callable[[FrameReader, bytes], None]) -> None:
    """Two portions, cut anywhere, give the frames that one portion gives."""
    bodies = [b"first", b"", b"x" * 70]
    data = framed(*bodies)
    for cut in range(len(data) + 1):
        reader = FrameReader(1000, SCRATCH)
        feed(reader, data[:cut])
        frames = list(reader.frames())
        feed(reader, data[cut:])
        frames += reader.frames()
        assert [bytes(frame) for frame in frames] == bodies
        assert reader.bytes_held == 0


@given(
    st.lists(st.integers(0, 200_000), max_size=4),
    st.lists(st.tuples(st.integers(0, 90_000), st.booleans()), max_size=12),
)
def test_any_portions_by_either_way(sizes: list[int], cuts: list[tuple[int, bool]]) -> None:
    """Large frames are complete, exact and writable, whichever way their bytes arrived."""
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    reader = FrameReader(200_000, SCRATCH)
    frames: list[memoryview] = []
    ways = [way for _, way in cuts] + [True]
    for way, portion in zip(ways, portions(framed(*bodies), [n for n, _ in cuts]), strict=True):
        (received if way else buffered)(reader, portion)
        frames += reader.frames()
    assert [bytes(frame) for frame in frames] == bodies
    assert all(not frame.readonly for frame in frames)


@pytest.mark.parametrize("announced", [101, -1, -(2**31), 2**31 - 1])
def test_a_frame_beyond_the_limit_is_refused(announced: int) -> None:
    """A frame beyond the limit is refused after the frames before it; later bytes are not read."""
    reader = FrameReader(100, SCRATCH)
    reader.receive(framed(b"good") + announced.to_bytes(4, "big", signed=True) + framed(b"bad"))
    frames = reader.frames()
    assert bytes(next(frames)) == b"good"
    with pytest.raises(FrameTooLarge, match=str(announced)):
        next(frames)
    reader.receive(framed(b"bad"))
    with pytest.raises(FrameTooLarge):
        list(reader.frames())


@pytest.mark.parametrize("feed", [received, buffered])
def test_memory_follows_the_bytes_that_came(feed: Callable[[FrameReader, bytes], None]) -> None:
    """Announcing 100 MB costs 4 KiB; the memory stays within sixteen times the received bytes."""
    reader = FrameReader(1 << 30, SCRATCH)
    feed(reader, (100 << 20).to_bytes(4, "big"))
    assert reader.bytes_held <= 4096
    sent = 0
    for _ in range(40):
        feed(reader, bytes(1000))
        sent += 1000
        assert reader.bytes_held <= 16 * (sent + 1000)
    assert list(reader.frames()) == []


def test_a_known_large_frame_is_received_in_place() -> None:
    """After its first bytes, a large frame's buffer receives the bytes of the socket directly."""
    reader = FrameReader(1 << 20, SCRATCH)
    reader.receive((1 << 20).to_bytes(4, "big") + bytes(1 << 16))
    assert len(reader.get_buffer()) == (1 << 20) - (1 << 16)


HEADERS = [
    (0, 8, "0000 0008 00000007 0002 6d65", True),  # v1
    (0, 9, "0000 0009 00000007 0002 6d65 00", True),  # v2: tagged fields, but no compact client id
    (7, 0, "0007 0000 00000007", False),  # v0
    (7, 1, "0007 0001 00000007 0002 6d65", True),
    (18, 3, "0012 0003 00000007 0002 6d65 00", True),
    # an unknown version is treated like the nearest known one
    (18, 99, "0012 0063 00000007 0002 6d65 00", True),
]


@pytest.mark.parametrize(("api_key", "version", "written", "has_client_id"), HEADERS)
def test_request_headers(api_key: int, version: int, written: str, has_client_id: bool) -> None:
    """Request headers are v2 for flexible versions, v0 for ControlledShutdown v0, else v1."""
    header = RequestHeader(api_key, version, 7, "me" if has_client_id else None)
    frame = bytes.fromhex(written) + b"body"
    assert b"".join(encode_request(header, [b"body"])) == framed(frame)
    assert decode_request_header(memoryview(frame)) == (header, BODY)


@pytest.mark.parametrize(
    ("api_key", "version", "written"),
    [
        (0, 8, "00000007"),
        (0, 9, "00000007 00"),
        (18, 3, "00000007"),  # response headers of ApiVersions never have tagged fields (KIP-511)
        (7, 0, "00000007"),
    ],
)
def test_response_headers(api_key: int, version: int, written: str) -> None:
    """Response headers are v1 for flexible versions, but v0 for every ApiVersions."""
    frame = bytes.fromhex(written) + b"body"
    assert b"".join(encode_response(api_key, version, 7, [b"body"])) == framed(frame)
    assert decode_response(memoryview(frame), api_key, version) == (7, BODY)


def test_a_null_client_id() -> None:
    """The client id of a request may be null."""
    header = RequestHeader(3, 1, -1, None)
    (frame,) = encode_request(header, [])
    assert decode_request_header(memoryview(frame)[4:]) == (header, memoryview(b""))


def test_unknown_tags_in_headers_are_skipped() -> None:
    """Unknown tagged fields in headers, of a newer peer, are skipped (KIP-482)."""
    tags = bytes.fromhex("01 05 02 ffff")
    request = memoryview(bytes.fromhex("0000 0009 00000007 ffff") + tags + b"body")
    assert decode_request_header(request) == (RequestHeader(0, 9, 7, None), BODY)
    assert decode_response(memoryview(bytes(4) + tags + b"body"), 0, 9) == (0, BODY)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "0000",
        "0000 0009 00000007 0009 41",
        "0000 0009 00000007 ffff",
        "0000 0001 00000007 0001 ff",
    ],
)
def test_a_bad_request_header(written: str) -> None:
    """A request header that is too short, or not valid text, raises `WireError`."""
    with pytest.raises(WireError):
        decode_request_header(memoryview(bytes.fromhex(written)))


def test_a_short_response_header() -> None:
    """A response that is too short for its header raises `WireError`."""
    with pytest.raises(WireError):
        decode_response(memoryview(b"\0\0\0"), 0, 8)
    with pytest.raises(WireError):
        decode_response(memoryview(b"\0\0\0\0"), 0, 9)


def test_large_parts_are_not_copied() -> None:
    """A frame contains the buffer of records itself, without a copy; small parts are joined."""
    records = memoryview(bytearray(100_000))
    parts = encode_response(1, 11, 7, [b"head", records, b"tail"])
    assert len(parts) == 3
    assert parts[1] is records
    assert (
        parts[0] == (4 + 4 + 100_000 + 4).to_bytes(4, "big") + bytes.fromhex("00000007") + b"head"
    )
