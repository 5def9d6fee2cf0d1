from broker_impl.log.config import LogConfig
from broker_impl.log.results import TimestampOffset
from tests.broker_impl.log.one_log import append, new_disk, opened, read_all


def test_indexes_below_the_recovery_point_are_synced() -> None:
    """Index entries of synced batches survive a power loss if the segment is closed afterwards."""
    disk = new_disk()
    log = opened(disk, LogConfig(index_interval_bytes=0))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=2000)
    log.flush()
    log.roll_if_due(10**10)
    disk.crash()
    again = opened(disk, LogConfig(), clean=False, recovery_point=2)
    assert again.offset_for_timestamp(1500) == TimestampOffset(2000, 1, 0)
    assert read_all(again) == [(0, "a"), (1, "b")]


def test_indexes_of_closed_segments_are_synced_with_them() -> None:
    """A segment that is synced after it was closed is trusted after a power loss."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=150, index_interval_bytes=0))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=2000)
    append(log, "c", timestamp_ms=3000)
    log.flush()
    disk.crash()
    again = opened(disk, clean=False, recovery_point=3)
    assert again.offset_for_timestamp(1500) == TimestampOffset(2000, 1, 0)


def test_old_segments_are_synced_once_that_is_cheap() -> None:
    """Closed segments are synced after a while, and the recovery point follows.

    After a crash recovery then need not check all of them.
    """
    log = opened(new_disk(), LogConfig(segment_bytes=150))
    for _ in range(3):
        append(log, "a" * 40)
    log.flush_settled(1000)
    assert log.recovery_point == 0
    log.flush_settled(40_000)
    assert log.recovery_point == 1
    log.flush_settled(40_000)
    log.flush_settled(40_000)
    assert log.recovery_point == 2


def test_flush_by_messages_comes_before_the_answer() -> None:
    """`flush.messages=1`: acknowledged records survive a power loss."""
    disk = new_disk()
    log = opened(disk, LogConfig(flush_messages=1, segment_bytes=400))
    for number in range(12):
        append(log, f"v{number}" * 20)
    assert log.recovery_point == 12
    disk.crash()
    again = opened(disk, clean=False, recovery_point=12)
    assert read_all(again) == [(number, f"v{number}" * 20) for number in range(12)]


def test_flush_by_time_is_due() -> None:
    """`flush.ms` counts from the oldest record that is not synced."""
    log = opened(new_disk(), LogConfig(flush_ms=100))
    assert not log.due_flush(10**6)
    append(log, "a", now_ms=1000)
    append(log, "b", now_ms=1090)
    assert not log.due_flush(1099)
    assert log.due_flush(1100)
    log.flush()
    assert not log.due_flush(10**6)


def test_a_flushed_segment_survives_with_its_name() -> None:
    """KAFKA-3968: a new segment's directory entry is synced when the segment is created."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    log.flush()
    disk.crash()
    assert read_all(opened(disk, clean=False, recovery_point=12)) == read_all(log)
