"""The data types of the protocol, encoded and decoded."""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.wire import reading, writing
from broker_impl.wire.types import Buffer

PAIRS: list[tuple[str, st.SearchStrategy[Any]]] = [
    ("bool", st.booleans()),
    ("int16", st.integers(-(2**15), 2**15 - 1)),
    ("int32", st.integers(-(2**31), 2**31 - 1)),
    ("int64", st.integers(-(2**63), 2**63 - 1)),
    ("string", st.text()),
    ("nullable_string", st.none() | st.text()),
    ("compact_string", st.text()),
    ("compact_nullable_string", st.none() | st.text()),
    ("bytes", st.binary()),
    ("nullable_bytes", st.none() | st.binary()),
    ("compact_bytes", st.binary()),
    ("compact_nullable_bytes", st.none() | st.binary()),
    ("uuid", st.uuids()),
]


def read_all(reader: reading.Reader[Any], data: bytes) -> Any:
    """Decode a message of this one value."""
    return reading.decode_message("Test", [reader], memoryview(data), 0)


@pytest.mark.parametrize(("name", "values"), PAIRS)
@given(data=st.data())
def test_what_is_written_is_read(
    name: str, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    """Every value is decoded as it was encoded, and every shorter input is refused."""
    value = data.draw(values)
    parts: writing.Parts = []
    getattr(writing, f"write_{name}")(parts, value)
    written = b"".join(parts)
    reader = getattr(reading, f"read_{name}")
    assert read_all(reader, written) == value
    for stop in range(len(written)):
        with pytest.raises(WireError):
            read_all(reader, written[:stop])


ARRAYS = ["array", "nullable_array", "compact_array", "compact_nullable_array"]


@pytest.mark.parametrize("name", ARRAYS)
@given(values=st.none() | st.lists(st.text(max_size=3), max_size=200))
def test_arrays(name: str, values: list[str] | None) -> None:
    """Every list is decoded as it was encoded; null is refused where the type is not nullable."""
    reader: Callable[..., Any] = getattr(reading, f"read_{name}")
    parts: writing.Parts = []
    if values is None and "nullable" not in name:
        null = b"\0" if "compact" in name else b"\xff" * 4
        with pytest.raises(WireError, match="null"):
            read_all(lambda data, at: reader(data, at, reading.read_string, 2), null)
        return
    getattr(writing, f"write_{name}")(parts, values, writing.write_string)
    got = read_all(lambda data, at: reader(data, at, reading.read_string, 2), b"".join(parts))
    assert got == values


@pytest.mark.parametrize("name", ARRAYS)
def test_no_impossible_count_is_believed(name: str) -> None:
    """An array whose announced count cannot fit into the input is refused before its first item."""
    count = writing.uvarint(1_000_001) if "compact" in name else struct.pack(">i", 1_000_000)
    reader: Callable[..., Any] = getattr(reading, f"read_{name}")

    def never(buffer: memoryview, at: int) -> tuple[int, int]:
        raise AssertionError("no item is read")

    with pytest.raises(WireError, match="announces"):
        read_all(lambda data, at: reader(data, at, never, 2), count + bytes(1_000_000))


@pytest.mark.parametrize("name", ["string", "bytes", "array"])
@pytest.mark.parametrize("length", [-1, -2])
def test_a_negative_length_is_refused(name: str, length: int) -> None:
    """A negative length is refused, except null where the type is nullable."""
    written = struct.pack(">h" if name == "string" else ">i", length)
    reader = getattr(reading, f"read_{name}")
    arguments = (reading.read_int16, 2) if name == "array" else ()
    with pytest.raises(WireError):
        read_all(lambda data, at: reader(data, at, *arguments), written)


@given(st.integers(0, 2**32 - 1))
def test_varints(value: int) -> None:
    """Varints have seven bits per byte, lowest first, up to 32 bits."""
    written = writing.uvarint(value)
    assert len(written) == max(1, -(-value.bit_length() // 7))
    assert read_all(reading.read_uvarint, written) == value


@pytest.mark.parametrize("written", ["ffffffffff01", "8080808010", "808080808000"])
def test_a_varint_beyond_32_bits_is_refused(written: str) -> None:
    """A varint of more than five bytes or 32 bits is refused."""
    with pytest.raises(WireError, match="varint"):
        read_all(reading.read_uvarint, bytes.fromhex(written))


def test_bytes_are_views() -> None:
    """Decoded bytes are writable views of the frame's memory."""
    frame = bytearray(struct.pack(">i", 3) + b"abc")
    value, _ = reading.read_bytes(memoryview(frame), 0)
    value[0] = ord("x")
    assert frame[4:] == b"xbc"


@pytest.mark.parametrize("compact", [False, True])
def test_records_are_one_buffer_or_several(compact: bool) -> None:
    """Several batches are encoded as one field of records, without being joined in memory."""
    write = writing.write_compact_nullable_records if compact else writing.write_nullable_records
    read = reading.read_compact_nullable_bytes if compact else reading.read_nullable_bytes
    pieces: list[Buffer] = [memoryview(b"one"), bytearray(b"two")]
    cases: list[tuple[writing.Records | None, bytes | None]] = [
        (pieces, b"onetwo"),
        (b"three", b"three"),
        ([], b""),
        (None, None),
    ]
    for value, expected in cases:
        parts: writing.Parts = []
        write(parts, value)
        assert read_all(read, b"".join(parts)) == expected
        if value is pieces:
            assert [part for part in parts if any(part is piece for piece in pieces)] == pieces


def test_tags_that_nobody_knows_are_skipped() -> None:
    """Unknown tagged fields are skipped, whatever they contain."""
    parts: writing.Parts = []
    fields = [
        writing.tagged(1, [b"ab"]),
        writing.tagged(300, [b"x" * 200]),
        writing.tagged(301, []),
    ]
    writing.write_tags(parts, fields)
    written = b"".join(parts)
    assert reading.skip_tags(memoryview(written), 0) == len(written)
    with pytest.raises(WireError, match="announces"):
        reading.skip_tags(memoryview(written[:100]), 0)


def test_small_parts_travel_together() -> None:
    """Small parts of a message are joined, and large ones are not copied."""
    large = bytes(10_000)
    assert writing.join_small([b"a", b"b", large, b"c", b"d"]) == [b"ab", large, b"cd"]
    assert writing.join_small([large, large]) == [large, large]
    assert writing.join_small([]) == []


def test_bytes_behind_a_message_are_ignored() -> None:
    """Bytes after a message are ignored.

    librdkafka's flexible Metadata request for all topics has one byte too many.
    """
    assert read_all(reading.read_bool, b"\1\0") is True


def test_text_must_be_text() -> None:
    """A string that is not UTF-8 is refused, and so is one that cannot be encoded as UTF-8."""
    with pytest.raises(WireError, match="utf-8"):
        read_all(reading.read_string, b"\0\1\xff")
    with pytest.raises(WireError, match="surrogates"):
        writing.encode_message("Test", [writing.write_string], "\ud800", 0)


def test_unknown_versions() -> None:
    """A version outside the schema is refused in both directions."""
    for version in (-1, 1):
        with pytest.raises(WireError, match="no version"):
            reading.decode_message("Test", [reading.read_bool], memoryview(b"\1"), version)
        with pytest.raises(WireError, match="no version"):
            writing.encode_message("Test", [writing.write_bool], True, version)


def test_numbers_out_of_range() -> None:
    """A number that does not fit its type is refused before anything is sent."""
    with pytest.raises(WireError, match="Test v0"):
        writing.encode_message("Test", [writing.write_int16], 1 << 15, 0)


def test_uuids_are_sixteen_bytes() -> None:
    """A UUID of fewer than 16 bytes is refused."""
    with pytest.raises(WireError, match="16 bytes"):
        read_all(reading.read_uuid, UUID(int=1).bytes[:15])


@given(st.lists(st.text(max_size=5)))
def test_shared_items_are_encoded_once_by_each_writer(values: list[str]) -> None:
    shared, calls = writing.SharedItems(values), []

    def write_counted(parts: writing.Parts, value: str) -> None:
        calls.append(value)
        writing.write_compact_string(parts, value)

    forms = {
        write_counted: writing.write_compact_string,
        writing.write_string: writing.write_string,
    }
    for write_array in (writing.write_array, writing.write_compact_array):
        for write_item, plain in forms.items():
            expected: writing.Parts = []
            write_array(expected, values, plain)
            for _ in range(2):
                parts: writing.Parts = []
                write_array(parts, shared, write_item)
                assert b"".join(parts) == b"".join(expected)
    assert calls == values
