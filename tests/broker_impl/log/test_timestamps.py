import pytest

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import timestamps
from broker_impl.log.config import LogConfig
from broker_impl.log.results import TimestampOffset
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from tests.broker_impl.log.one_log import append, new_disk, opened, records


def test_a_record_is_found_by_its_time() -> None:
    """A look-up by time finds the first record at or after it, within a batch too."""
    log = opened(new_disk(), LogConfig())
    log.append_as_leader(
        batch.encode_batch([Record(timestamp_ms=t) for t in (10, 30, 20)], compression=batch.GZIP),
        leader_epoch=4,
        now_ms=0,
    )
    append(log, "d", timestamp_ms=25, epoch=5)
    assert log.offset_for_timestamp(0) == TimestampOffset(10, 0, 4)
    assert log.offset_for_timestamp(11) == TimestampOffset(30, 1, 4)
    assert log.offset_for_timestamp(31) is None
    assert log.offset_for_timestamp(11, limit=1) is None
    log.advance_start(2)
    assert log.offset_for_timestamp(0) == TimestampOffset(20, 2, 4)
    assert log.offset_for_timestamp(21) == TimestampOffset(25, 3, 5)


def test_the_newest_time_is_found() -> None:
    """KAFKA-16310: MAX_TIMESTAMP finds the first record with the largest timestamp.

    It is not the last record of that record's batch.
    """
    log = opened(new_disk(), LogConfig(segment_bytes=250))
    assert log.offset_of_max_timestamp() is None
    for times in ((10, 30, 30), (30,), (20, 25), (40, 5)):
        log.append_as_leader(
            batch.encode_batch([Record(timestamp_ms=t) for t in times]), leader_epoch=0, now_ms=0
        )
    assert len(log.segment_offsets) > 1
    assert log.offset_of_max_timestamp() == TimestampOffset(40, 6, 0)
    assert log.offset_of_max_timestamp(limit=6) == TimestampOffset(30, 1, 0)
    assert log.offset_of_max_timestamp(limit=1) == TimestampOffset(10, 0, 0)
    log.advance_start(5)
    assert log.offset_of_max_timestamp(limit=6) == TimestampOffset(25, 5, 0)
    assert log.offset_of_max_timestamp(limit=7) == TimestampOffset(40, 6, 0)


def test_records_that_are_none_are_found_out_by_a_look_up() -> None:
    """Appends do not decompress batches, so a look-up by time is first to find broken records."""
    log = opened(new_disk())
    sent = bytearray(batch.encode_batch(records("abc")))
    sent[batch.HEADER_BYTES + 1 :] = b"\xff" * (len(sent) - batch.HEADER_BYTES - 1)
    batch.stamp(head := sent[: batch.HEADER_BYTES], bytes(sent[batch.HEADER_BYTES :]), 1000)
    log.append_as_follower(bytes(head) + bytes(sent[batch.HEADER_BYTES :]), now_ms=0)
    with pytest.raises(ApiError) as refused:
        log.offset_for_timestamp(0)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


def test_segments_are_listed_by_the_time_of_their_last_write() -> None:
    """Segments that were written later are left out, and the end counts as written now."""
    log = opened(new_disk(), LogConfig(segment_bytes=150))
    assert timestamps.segments_before(log, None, 50) == [0]
    for now_ms in (10, 20, 30):
        log.append_as_leader(
            batch.encode_batch([Record(value=b"x" * 60)]), leader_epoch=0, now_ms=now_ms
        )
    assert log.segment_offsets == [0, 1, 2]
    assert timestamps.segments_before(log, None, 50) == [3, 2, 1, 0]
    assert timestamps.segments_before(log, 50, 50) == [3, 2, 1, 0]
    assert timestamps.segments_before(log, 49, 50) == [2, 1, 0]
    assert timestamps.segments_before(log, 20, 50) == [1, 0]
    assert timestamps.segments_before(log, 9, 50) == []
    log.advance_start(1)
    assert timestamps.segments_before(log, 20, 50) == [1, 1]
