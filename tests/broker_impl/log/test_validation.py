"""Which batches of a producer are valid; each refusal has Kafka's error code and no effect."""

import struct
from collections.abc import Callable

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import validation
from broker_impl.log.config import LogConfig
from broker_impl.wire import batch
from broker_impl.wire.batch import Record

GOOD = batch.encode_batch([Record(value=b"x" * 20, timestamp_ms=1000)] * 3)


def changed(at: int, form: str, value: int, *, crc: bool = True) -> bytes:
    """The good batch with one field changed and, by default, with a CRC that matches."""
    data = bytearray(GOOD)
    struct.pack_into(form, data, at, value)
    if crc:
        struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def refusal(sent: bytes, config: LogConfig | None = None, now_ms: int = 1000) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        validation.producer_batch(sent, config or LogConfig(), now_ms)
    return refused.value.code


def test_a_good_batch_is_accepted() -> None:
    """A good batch is accepted with any codec, also without timestamps; its header is returned."""
    assert validation.producer_batch(GOOD, LogConfig(), 0) == batch.parse_header(GOOD)
    for codec in range(5):
        sent = batch.encode_batch([Record(timestamp_ms=-1)], compression=codec)
        strict = LogConfig(timestamp_difference_ms_max=1)
        assert validation.producer_batch(sent, strict, 10**6).compression == codec


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


@pytest.mark.parametrize(
    ("times", "now_ms"), [((1000, 2000), 1499), ((1000, 2000), 1501), ((2000, 1000), 1499)]
)
def test_a_batch_may_be_out_of_time(times: tuple[int, int], now_ms: int) -> None:
    """`message.timestamp.difference.max.ms` applies to the first and to the largest timestamp."""
    sent = batch.encode_batch([Record(timestamp_ms=time) for time in times])
    config = LogConfig(timestamp_difference_ms_max=500)
    assert refusal(sent, config, now_ms) == ErrorCode.INVALID_TIMESTAMP
    ours = LogConfig(timestamp_difference_ms_max=500, timestamp_type=batch.LOG_APPEND_TIME)
    validation.producer_batch(sent, ours, now_ms)


@given(st.data())
def test_any_damage_is_refused_or_outside_the_crc(data: st.DataObject) -> None:
    """A changed byte raises ApiError, unless it is in a field that the leader overwrites."""
    damaged = bytearray(GOOD)
    at = data.draw(st.integers(0, len(GOOD) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    check: Callable[[], object] = lambda: validation.producer_batch(damaged, LogConfig(), 0)  # noqa: E731 - one of two ways to call it
    if at < 8 or 12 <= at < 16:
        check()
    else:
        with pytest.raises(ApiError):
            check()
