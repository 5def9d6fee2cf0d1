"""Which batches of a producer are valid; each refusal has Kafka's error code and no effect."""

import struct

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import ApiError, ErrorCode, RecordsRefused
from broker_impl.log import validation
from broker_impl.log.config import LogConfig
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record

GOOD = batch.encode_batch([Record(value=b"x" * 20, timestamp_ms=1000)] * 3)


def changed(at: int, form: str, value: int, *, crc: bool = True) -> bytes:
    """The good batch with one field changed and, by default, with a CRC that matches."""
    data = bytearray(GOOD)
    struct.pack_into(form, data, at, value)
    if crc:
        struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def check(sent: bytes, config: LogConfig | None = None, now_ms: int = 1000) -> BatchHeader:
    """Check a batch and its records, as a leader does."""
    config = config or LogConfig()
    header = validation.producer_batch(sent, config, now_ms)
    validation.each_record(sent, header, config, now_ms)
    return header


def refusal(sent: bytes, config: LogConfig | None = None, now_ms: int = 1000) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        check(sent, config, now_ms)
    return refused.value.code


def test_a_good_batch_is_accepted() -> None:
    """A good batch is accepted with any codec, also without timestamps; its header is returned."""
    assert check(GOOD) == batch.parse_header(GOOD)
    for codec in range(5):
        sent = batch.encode_batch([Record(timestamp_ms=-1)], compression=codec)
        strict = LogConfig(timestamp_difference_ms_max=1)
        assert check(sent, strict, 10**6).compression == codec


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (GOOD[:-1], ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:30], ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (changed(16, ">b", 0, crc=False), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (changed(16, ">b", 1, crc=False), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (changed(16, ">b", 3, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (changed(8, ">i", 10, crc=False), ErrorCode.CORRUPT_MESSAGE),
        (changed(23, ">i", 3), ErrorCode.INVALID_RECORD),  # last offset delta
        (changed(57, ">i", 2), ErrorCode.INVALID_RECORD),  # count
        (changed(21, ">h", 0x20), ErrorCode.INVALID_RECORD),  # a control batch
        # a producer id without epoch and sequence
        (changed(43, ">q", 7), ErrorCode.INVALID_RECORD),
        (changed(21, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (changed(21, ">h", 8), ErrorCode.INVALID_TIMESTAMP),  # LogAppendTime set by the producer
    ],
)
def test_a_bad_batch_is_refused(sent: bytes, code: ErrorCode) -> None:
    """Each defect has its error code; CORRUPT_MESSAGE is the one that clients retry."""
    assert refusal(sent) == code


def test_a_batch_may_be_too_large() -> None:
    """A batch may be too large for the topic, or for a segment of it."""
    assert refusal(GOOD, LogConfig(message_bytes_max=len(GOOD) - 1)) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(GOOD, LogConfig(segment_bytes=50)) == ErrorCode.RECORD_LIST_TOO_LARGE
    fitting = LogConfig(message_bytes_max=len(GOOD), segment_bytes=len(GOOD))
    validation.producer_batch(GOOD, fitting, 0)


@pytest.mark.parametrize("too_many", [False, True])
def test_a_batch_may_have_too_many_records(too_many: bool) -> None:
    """Some kilobytes can have millions of records: no broker may spend seconds on one batch."""
    count = validation.RECORDS_MAX + too_many
    data = bytearray(GOOD)
    struct.pack_into(">i", data, 23, count - 1)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    if too_many:
        assert refusal(bytes(data)) == ErrorCode.MESSAGE_TOO_LARGE
    else:
        assert check(bytes(data)).count == count


@pytest.mark.parametrize(
    ("times", "now_ms"),
    [((1000, 2000), 1499), ((1000, 2000), 1501), ((2000, 1000), 1499), ((1400, 1, 1400), 1499)],
)
def test_a_batch_may_be_out_of_time(times: tuple[int, ...], now_ms: int) -> None:
    """`message.timestamp.difference.max.ms` applies to the timestamp of every record."""
    sent = batch.encode_batch([Record(timestamp_ms=time) for time in times])
    config = LogConfig(timestamp_difference_ms_max=500)
    assert refusal(sent, config, now_ms) == ErrorCode.INVALID_TIMESTAMP
    ours = LogConfig(timestamp_difference_ms_max=500, timestamp_type=batch.LOG_APPEND_TIME)
    check(sent, ours, now_ms)


def test_all_invalid_records_are_named() -> None:
    """KIP-467: a refusal names every record without a key, and every one that is out of time."""
    keys = (b"a", None, b"b", None)
    sent = batch.encode_batch([Record(key, timestamp_ms=1000) for key in keys])
    with pytest.raises(RecordsRefused) as refused:
        check(sent, LogConfig(cleanup_policy=("compact",)))
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert [number for number, _ in refused.value.errors] == [1, 3]
    sent = batch.encode_batch(
        [Record(b"a", timestamp_ms=900), Record(None, timestamp_ms=5), Record(b"b", timestamp_ms=7)]
    )
    both = LogConfig(cleanup_policy=("compact",), timestamp_difference_ms_max=500)
    with pytest.raises(RecordsRefused) as refused:
        check(sent, both)
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in refused.value.errors] == [1, 1, 2]
    with pytest.raises(RecordsRefused) as refused:
        check(changed(21, ">h", 8))
    assert [number for number, _ in refused.value.errors] == [0, 1, 2]


@pytest.mark.parametrize("codec", [batch.NONE, batch.GZIP, batch.SNAPPY, batch.LZ4, batch.ZSTD])
def test_a_batch_is_recompressed(codec: int) -> None:
    """The records and the producer's fields stay; the new size must be small enough, too."""
    sent = batch.encode_batch(
        [Record(b"k", b"v" * 1000, 1000, (("h", None),))] * 5,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        compression=batch.GZIP,
        transactional=True,
    )
    before = batch.parse_header(sent)
    stored, after = validation.recompressed(sent, before, codec, LogConfig())
    assert batch.check_crc(stored, 0, after)
    assert batch.records(stored) == batch.records(sent)
    assert after.compression == codec
    assert after == before._replace(
        length=after.length, crc=after.crc, attributes=before.attributes ^ batch.GZIP ^ codec
    )
    small = LogConfig(message_bytes_max=after.size - 1)
    with pytest.raises(ApiError) as refused:
        validation.recompressed(sent, before, codec, small)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("sent", [batch.NONE, batch.LZ4])
@pytest.mark.parametrize("configured", [None, batch.NONE, batch.GZIP])
def test_the_codec_is_the_configured_one(sent: int, configured: int | None) -> None:
    """Without one it is the producer's; a batch that is not compressed has a codec, too."""
    header = batch.parse_header(batch.encode_batch([Record()], compression=sent))
    wanted = sent if configured is None else configured
    assert validation.codec(header, LogConfig(compression=configured)) == wanted


def test_what_cannot_be_decompressed_is_refused() -> None:
    """A batch whose CRC is right, but whose bytes are not those of its codec, is refused."""
    sent = changed(21, ">h", batch.ZSTD)
    with pytest.raises(ApiError) as refused:
        validation.recompressed(sent, batch.parse_header(sent), batch.NONE, LogConfig())
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


@given(st.data())
def test_any_damage_is_refused_or_outside_the_crc(data: st.DataObject) -> None:
    """A changed byte raises ApiError, unless it is in a field that the leader overwrites."""
    damaged = bytearray(GOOD)
    at = data.draw(st.integers(0, len(GOOD) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    if at < 8 or 12 <= at < 16:
        check(bytes(damaged))
    else:
        with pytest.raises(ApiError):
            check(bytes(damaged))
