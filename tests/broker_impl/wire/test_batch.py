"""Record batches: encoding and decoding, agreement with other libraries, and damaged bytes."""

import contextlib
import random
import struct
from collections.abc import Callable

import cramjam
import crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import assume, given
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record

CODECS = [batch.NONE, batch.GZIP, batch.SNAPPY, batch.LZ4, batch.ZSTD]

blobs = st.none() | st.binary(max_size=300)
some_records = st.lists(
    st.builds(
        Record,
        key=blobs,
        value=blobs,
        timestamp_ms=st.integers(0, 2**44),
        headers=st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@given(some_records, st.sampled_from(CODECS), st.integers(0, 2**62))
def test_what_is_encoded_is_decoded(records: list[Record], codec: int, base: int) -> None:
    """Every record is decoded with its offset, under every codec."""
    data = batch.encode_batch(records, compression=codec, base_offset=base, leader_epoch=7)
    header = batch.parse_header(data)
    assert header.size == len(data)
    assert header.next_offset == base + len(records)
    assert header.partition_leader_epoch == 7
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    assert batch.check_crc(data, 0, header)
    expected = [record._replace(offset=base + i) for i, record in enumerate(records)]
    assert batch.records(data) == expected


@given(some_records, st.sampled_from([batch.NONE, batch.GZIP]))
def test_aiokafka_reads_what_we_encode(records: list[Record], codec: int) -> None:
    """aiokafka decodes an encoded batch with a valid CRC and the same records."""
    data = batch.encode_batch(records, compression=codec, base_offset=40)
    theirs = DefaultRecordBatch(data)
    assert theirs.validate_crc()
    found = [Record(r.key, r.value, r.timestamp, tuple(r.headers), r.offset) for r in theirs]
    assert found == batch.records(data)


@pytest.mark.parametrize("size", [10, 64 << 10, (64 << 10) + 1, 300_000])
@pytest.mark.parametrize("value", [bytes, random.Random(1).randbytes])
def test_lz4_frames_have_independent_blocks(size: int, value: Callable[[int], bytes]) -> None:
    """Java's client reads no other LZ4 frames; blocks that do not shrink are stored as they are."""
    record = Record(value=value(size))
    data = batch.encode_batch([record], compression=batch.LZ4)
    assert data[61:68].hex() == "04224d18604082"
    assert batch.records(data) == [record._replace(offset=0)]


@pytest.mark.parametrize("codec", [batch.NONE, batch.GZIP])
def test_we_read_what_aiokafka_encodes(codec: int) -> None:
    """A batch that aiokafka encodes is decoded with its header and records."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        batch_size=10_000,
    )
    for i in range(3):
        builder.append(i, timestamp=1000 + i, key=b"k", value=b"v" * 100, headers=[("h", b"x")])
    data = bytes(builder.build())
    header = batch.parse_header(data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, 7)
    assert (header.last_sequence, header.count, header.compression) == (9, 3, codec)
    assert header.is_transactional
    assert not header.is_control
    assert batch.check_crc(data, 0, header)
    assert batch.records(data) == [
        Record(b"k", b"v" * 100, 1000 + i, (("h", b"x"),), i) for i in range(3)
    ]


def test_xerial_blocks_of_snappy_are_read() -> None:
    """Java encodes snappy as a stream of blocks, which are joined."""
    plain = batch.encode_batch([Record(b"k", b"v" * 50, 9)])
    payload = plain[batch.HEADER_BYTES :]
    blocks = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for part in (payload[:20], payload[20:]):
        block = bytes(cramjam.snappy.compress_raw(part))
        blocks += struct.pack(">i", len(block)) + block
    header = bytearray(plain[: batch.HEADER_BYTES])
    struct.pack_into(">i", header, 8, 49 + len(blocks))
    struct.pack_into(">h", header, 21, batch.SNAPPY)
    assert batch.records(bytes(header) + blocks) == [Record(b"k", b"v" * 50, 9, (), 0)]
    struct.pack_into(">i", header, 8, 49 + len(blocks) + 2)
    with pytest.raises(WireError, match="a snappy block is truncated"):
        batch.records(bytes(header) + blocks + b"\0\0")


@pytest.mark.parametrize("codec", [batch.GZIP, batch.SNAPPY, batch.LZ4, batch.ZSTD])
def test_a_bomb_is_refused(codec: int) -> None:
    """A small batch that would decompress beyond the limit is refused before it takes memory."""
    data = batch.encode_batch([Record(value=bytes(3_000_000))], compression=codec)
    with pytest.raises(WireError):
        batch.records(data, bytes_max=1_000_000)
    assert len(batch.records(data, bytes_max=4_000_000)) == 1


@pytest.mark.parametrize(
    ("at", "codec"), [(21, 0x07), (61, batch.GZIP), (61, batch.ZSTD), (61, batch.NONE)]
)
def test_garbage_inside_a_batch_is_a_wire_error(at: int, codec: int) -> None:
    """Invalid records and unknown codecs raise WireError only."""
    data = bytearray(batch.encode_batch([Record(value=b"x" * 80)]))
    struct.pack_into(">h", data, 21, codec)
    data[at + 1 :] = b"\xff" * (len(data) - at - 1)
    with pytest.raises(WireError):
        batch.records(data)


@given(st.data())
def test_any_damage_is_a_wire_error_or_a_batch(data: st.DataObject) -> None:
    """A batch with any changed byte is decoded or raises WireError."""
    good = bytearray(
        batch.encode_batch([Record(b"key", b"value", 5, (("h", b"x"),))] * 3, base_offset=3)
    )
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        batch.records(good)


@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_noise_is_a_wire_error(noise: bytes, has_magic: bool) -> None:
    """Bytes that are not a batch raise WireError at any length, even if they have its magic."""
    data = bytearray(noise)
    if has_magic and len(data) > 16:
        data[16] = batch.MAGIC
    length = (len(data) - 12).to_bytes(4, "big", signed=True)
    assume(data[8:12] != length)  # otherwise the noise has the form of a batch
    with pytest.raises(WireError):
        list(batch.batches(data))


def test_no_bytes_are_no_batches() -> None:
    """An empty buffer is valid, and contains no batch."""
    assert list(batch.batches(b"")) == []


def test_batches_walks_and_finds_the_torn_tail() -> None:
    """Each batch is found at its position; a tail cut at any byte is refused unless allowed."""
    first = batch.encode_batch([Record(value=b"a")])
    second = batch.encode_batch([Record(value=b"b")] * 2, base_offset=1)
    whole = first + second
    assert [at for at, _ in batch.batches(whole)] == [0, len(first)]
    for cut in range(1, len(second)):
        with pytest.raises(WireError):
            list(batch.batches(whole[:-cut]))
        assert [at for at, _ in batch.batches(whole[:-cut], torn_tail=True)] == [0]


def test_old_formats_are_refused() -> None:
    """Magic 0 and 1 are refused, with the magic in the message."""
    data = bytearray(batch.encode_batch([Record(value=b"a")]))
    data[16] = 1
    with pytest.raises(WireError, match="magic 1"):
        list(batch.batches(data))
    with pytest.raises(WireError, match="magic 1"):
        list(batch.batches(data[:20]))


def test_patch_keeps_the_crc() -> None:
    """Base offset and leader epoch are patched in place, and the CRC does not cover them."""
    data = bytearray(b"??" + batch.encode_batch([Record(value=b"a")] * 3))
    patched = batch.patch(memoryview(data)[2:], batch.parse_header(data, 2), 1000, 4)
    header = batch.parse_header(data, 2)
    assert patched == header
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (
        1000,
        1002,
        4,
    )
    assert batch.check_crc(data, 2, header)


def test_the_crc_is_crc32c_from_the_attributes_on() -> None:
    """An independent CRC-32C over bytes 21 to the end agrees, and one flipped bit does not."""
    data = bytearray(batch.encode_batch([Record(value=b"a")]))
    header = batch.parse_header(data)
    assert header.crc == crc32c.crc32c(bytes(data[21:]))
    data[-1] ^= 1
    assert not batch.check_crc(data, 0, header)


def test_stamp_makes_it_log_append_time() -> None:
    """`stamp` replaces the records' timestamps by the broker's time, under a new CRC."""
    sent = batch.encode_batch([Record(value=b"a", timestamp_ms=5)] * 2)
    head = bytearray(sent[: batch.HEADER_BYTES])
    stamped = batch.stamp(head, sent[batch.HEADER_BYTES :], 777)
    data = bytes(head) + sent[batch.HEADER_BYTES :]
    header = batch.parse_header(data)
    assert stamped == header
    assert header.timestamp_type == batch.LOG_APPEND_TIME
    assert batch.check_crc(data, 0, header)
    assert [record.timestamp_ms for record in batch.records(data)] == [777, 777]


@pytest.mark.parametrize(
    ("first", "count", "last"),
    [(0, 1, 0), (5, 3, 7), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 4, 1)],
)
def test_sequences_wrap(first: int, count: int, last: int) -> None:
    """After sequence 2^31 - 1 comes 0 (KAFKA-7692)."""
    data = batch.encode_batch(
        [Record()] * count, producer_id=1, producer_epoch=0, base_sequence=first
    )
    assert batch.parse_header(data).last_sequence == last


def test_a_producer_without_idempotence_has_no_sequence() -> None:
    """Without idempotence, the base sequence and the last sequence are -1."""
    header: BatchHeader = batch.parse_header(batch.encode_batch([Record()] * 3))
    assert (header.producer_id, header.last_sequence) == (-1, -1)
