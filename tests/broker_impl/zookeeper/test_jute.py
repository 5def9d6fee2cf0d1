import struct
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import FrameTooLarge, WireError
from broker_impl.zookeeper.jute import (
    Bool,
    Buffer,
    FrameReader,
    Int,
    Long,
    Reader,
    Record,
    TrailingBool,
    UString,
    frame,
    frequent,
)

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"))


class Leaf(Record, frozen=True):
    number: Int
    text: UString


class Everything(Record, frozen=True):
    small: Int
    large: Long
    flag: Bool
    text: UString
    data: Buffer
    leaf: Leaf
    leaves: tuple[Leaf, ...]
    numbers: tuple[Long, ...]
    last: Int
    trailing: TrailingBool


leaves = st.builds(Leaf, INTS, TEXTS)
records = st.builds(
    Everything,
    small=INTS,
    large=LONGS,
    flag=st.booleans(),
    text=TEXTS,
    data=st.none() | st.binary(),
    leaf=leaves,
    leaves=st.lists(leaves).map(tuple),
    numbers=st.lists(LONGS).map(tuple),
    last=INTS,
    trailing=st.none() | st.booleans(),
)


@given(records)
def test_round_trip(record: Everything) -> None:
    """An encoded record is decoded as it was, to its last byte."""
    reader = Reader(record.encode())
    assert Everything.read(reader) == record
    reader.end()


def test_the_bytes_of_a_record_are_those_of_its_schema() -> None:
    """Fields are encoded big-endian without tags, and fields of varying size after their length."""
    record = Everything(1, 2, True, "é", None, Leaf(3, ""), (Leaf(4, "x"),), (5,), 6, None)
    assert record.encode() == (
        struct.pack(">iq?", 1, 2, True)
        + b"\0\0\0\2\xc3\xa9"
        + b"\xff\xff\xff\xff"
        + struct.pack(">ii", 3, 0)
        + struct.pack(">iii1s", 1, 4, 1, b"x")
        + struct.pack(">iq", 1, 5)
        + struct.pack(">i", 6)
    )


@given(records, st.data())
def test_a_record_cut_short_is_refused(record: Everything, data: st.DataObject) -> None:
    """No prefix of a record without its trailing flag is a record."""
    encoded = msgspec.structs.replace(record, trailing=None).encode()
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(WireError):
        Everything.read(Reader(encoded[:cut]))


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_read(garbage: bytes) -> None:
    """Any bytes are decoded as a record or raise WireError."""
    try:
        Everything.read(Reader(garbage))
    except WireError:
        return


@pytest.mark.parametrize("count", [-2, 1 << 30, 2**31 - 1])
def test_a_length_beyond_the_frame_is_refused_before_anything_is_read(count: int) -> None:
    """A count that the rest of the frame cannot hold is refused before anything is read."""
    with pytest.raises(WireError):
        Reader(struct.pack(">i", count) + b"abc").length()


def test_a_null_string_is_the_empty_one() -> None:
    """A null string is read as the empty string, because kazoo writes the empty string as null."""
    assert Reader(b"\xff\xff\xff\xff").ustring() == ""


def test_bytes_behind_a_record_are_seen() -> None:
    """Bytes after a record are refused where the record must be the whole frame."""
    reader = Reader(Leaf(1, "x").encode() + b"!")
    Leaf.read(reader)
    with pytest.raises(WireError):
        reader.end()


@given(st.lists(leaves, max_size=5), st.data())
def test_frames_do_not_depend_on_how_the_bytes_come(sent: list[Leaf], data: st.DataObject) -> None:
    """The same bytes cut anywhere give the same frames."""
    stream = b"".join(frame(leaf) for leaf in sent)
    cut = data.draw(st.integers(0, len(stream)))
    reader = FrameReader()
    got = []
    for part in (stream[:cut], stream[cut:]):
        reader.receive(part)
        got += list(reader.frames())
    assert [Leaf.read(Reader(packet)) for packet in got] == sent


def test_frames_taken_one_at_a_time_are_not_taken_twice() -> None:
    """A consumer that stops between two frames finds the next one later."""
    reader = FrameReader()
    reader.receive(frame(Leaf(1, "a")) + frame(Leaf(2, "b")))
    first = next(iter(reader.frames()))
    assert first == Leaf(1, "a").encode()
    assert list(reader.frames()) == [Leaf(2, "b").encode()]


@pytest.mark.parametrize("size", [-1, 101, 2**31 - 1])
def test_a_frame_beyond_the_limit_is_refused(size: int) -> None:
    """A frame length above the limit or below zero is refused."""
    reader = FrameReader(bytes_max=100)
    reader.receive(struct.pack(">i", size))
    with pytest.raises(FrameTooLarge):
        list(reader.frames())


COMMON = (Leaf(1, "common"), Leaf(2, ""))


class Usual(Record, frozen=True):
    leaves: Annotated[tuple[Leaf, ...], frequent(Leaf, COMMON)]
    last: Int


class Plain(Record, frozen=True):
    leaves: tuple[Leaf, ...]
    last: Int


@given(
    st.just(COMMON) | st.just((Leaf(1, "common"), Leaf(2, ""))) | st.lists(leaves).map(tuple), INTS
)
def test_a_frequent_vector_has_the_bytes_of_any_other(value: tuple[Leaf, ...], last: int) -> None:
    """A vector with a frequent value is encoded and decoded as one without."""
    encoded = Usual(value, last).encode()
    assert encoded == Plain(value, last).encode()
    reader = Reader(encoded)
    assert Usual.read(reader) == Usual(value, last)
    reader.end()


def test_records_share_the_frequent_vector() -> None:
    """A decoded vector that equals the frequent one is that object."""
    read = Usual.read(Reader(Plain((Leaf(1, "common"), Leaf(2, "")), 1).encode()))
    assert read.leaves is COMMON


def test_a_vector_that_only_begins_like_the_frequent_one_is_read() -> None:
    """A longer vector with the same first items is not mistaken for the frequent one."""
    longer = (*COMMON, Leaf(3, "x"))
    assert Usual.read(Reader(Usual(longer, 7).encode())) == Usual(longer, 7)
