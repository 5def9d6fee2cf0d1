from contextlib import suppress

import pytest

from broker_impl.errors import StorageError
from broker_impl.log import retention
from broker_impl.log.config import LogConfig
from broker_impl.log.results import Deleted
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from tests.broker_impl.log import compacted_log
from tests.broker_impl.log.one_log import append, new_disk, opened, read_all


def test_segments_are_begun_by_time() -> None:
    """`segment.ms` counts from the first batch's timestamp, or from its append if it has none."""
    log = opened(new_disk(), LogConfig(segment_ms=100))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=1100)
    assert log.segment_offsets == [0]
    append(log, "c", timestamp_ms=1101)
    assert log.segment_offsets == [0, 2]
    log = opened(new_disk(), LogConfig(segment_ms=100))
    append(log, "a", timestamp_ms=-1, now_ms=0)
    append(log, "b", timestamp_ms=-1, now_ms=101)
    assert log.segment_offsets == [0, 1]


def test_segments_are_begun_at_different_times() -> None:
    """`segment.jitter.ms` closes each segment by another time, at most by the jitter earlier."""
    config = LogConfig(segment_ms=1000, segment_jitter_ms=300)
    ages = [config.age_max_ms(f"t-{number}/{0:020d}") for number in range(200)]
    assert all(700 < age <= 1000 for age in ages)
    assert len(set(ages)) > 100
    assert config.age_max_ms("t-0/0") == config.age_max_ms("t-0/0")
    assert 0 < LogConfig(segment_ms=10, segment_jitter_ms=10**6).age_max_ms("t-0/0") <= 10
    assert LogConfig(segment_ms=10).age_max_ms("t-0/0") == 10
    compacted = LogConfig(
        segment_ms=1000, max_compaction_lag_ms=50, cleanup_policy=("compact",), segment_jitter_ms=30
    )
    assert {20 < compacted.age_max_ms(f"t-0/{each}") <= 50 for each in range(99)} == {True}
    assert LogConfig(segment_ms=1000, max_compaction_lag_ms=50).age_max_ms("t-0/0") == 1000
    log = opened(new_disk(), config)
    age = config.age_max_ms(f"t-0/{0:020d}")
    append(log, "a", timestamp_ms=5000)
    append(log, "b", timestamp_ms=5000 + age)
    assert log.segment_offsets == [0]
    append(log, "c", timestamp_ms=5001 + age)
    assert log.segment_offsets == [0, 2]
    assert log.roll_if_due(config.age_max_ms(f"t-0/{2:020d}")) is False
    assert log.roll_if_due(config.age_max_ms(f"t-0/{2:020d}") + 1) is True


def test_retention_by_size() -> None:
    """Retention by size deletes the oldest segments while the others hold at least the limit."""
    log = opened(new_disk(), LogConfig(segment_bytes=400, retention_bytes=700, retention_ms=-1))
    for number in range(12):
        append(log, f"v{number}" * 20)
    before = log.segment_offsets
    sizes = log.size_bytes
    deleted = log.retain(0, log.end_offset)
    assert deleted == [f"{offset:020d}.log" for offset in before[: len(deleted)]]
    assert log.segment_offsets == before[len(deleted) :]
    assert 700 <= log.size_bytes < sizes
    assert log.start_offset == log.segment_offsets[0]
    assert log.retain(0, log.end_offset) == []


def test_retention_by_time() -> None:
    """Retention by time deletes segments whose newest record is too old, even the active one."""
    log = opened(new_disk(), LogConfig(segment_bytes=150, retention_ms=100, segment_ms=10**9))
    append(log, "a" * 40, timestamp_ms=1000)
    append(log, "b" * 40, timestamp_ms=1050)
    assert log.retain(1100, 2) == []
    assert log.retain(1101, 2) == [f"{0:020d}.log"]
    assert read_all(log) == [(1, "b" * 40)]
    assert log.retain(1151, 2) == [f"{1:020d}.log"]
    assert (log.start_offset, log.end_offset) == (2, 2)
    assert log.retain(10**9, 2) == []


def test_what_was_deleted_is_noted() -> None:
    """Each deleted segment is noted with what was left, and the settings by which it was."""
    config = LogConfig(segment_bytes=150, retention_ms=100, retention_bytes=150)
    log = opened(new_disk(), config)
    for number in range(3):
        append(log, "a" * 40, timestamp_ms=1000 + number)
    size = log.segments[0].size
    log.retain(1101, 3)
    assert list(log.latest_deleted) == [Deleted(1, 0, 1, 0, 2 * size, 1101, 150, 100)]
    log.config = LogConfig(cleanup_policy=("compact",), retention_ms=1)
    log.retain(2000, 3)
    assert log.deletions == 1
    log.advance_start(2)
    log.retain(2000, 3)
    assert log.latest_deleted[-1] == Deleted(2, 1, 2, 2, size, 2000, -1, -1)


def test_a_segment_is_surplus_if_enough_remains_without_it() -> None:
    """Retention by size keeps a segment without which the log would be below the limit."""
    assert retention.is_surplus(100, 100)
    assert not retention.is_surplus(101, 100)
    assert not retention.is_surplus(0, 0)


def test_retention_keeps_what_is_not_below_the_high_watermark() -> None:
    """KAFKA-5634: retention deletes no segment at or above the high watermark."""
    log = opened(new_disk(), LogConfig(segment_bytes=150, retention_ms=100))
    for _ in range(3):
        append(log, "a" * 40, timestamp_ms=1000)
    assert log.segment_offsets == [0, 1, 2]
    assert log.retain(10**6, 0) == []
    assert log.retain(10**6, 1) == [f"{0:020d}.log"]
    assert log.retain(10**6, 2) == [f"{1:020d}.log"]
    assert log.retain(10**6, 2) == []


@pytest.mark.parametrize("policy", [("compact",), ()])
def test_retention_deletes_nothing_without_its_policy(policy: tuple[str, ...]) -> None:
    """Without `delete` in the cleanup policy, retention by age and size does not apply."""
    log = opened(
        new_disk(),
        LogConfig(segment_bytes=150, retention_ms=1, retention_bytes=1, cleanup_policy=policy),
    )
    for _ in range(3):
        sent = batch.encode_batch([Record(b"k", b"a" * 40, 1000)])
        log.append_as_leader(sent, leader_epoch=0, now_ms=0)
    assert log.retain(10**9, 3) == []


def test_deleted_files_are_removed_after_their_delay() -> None:
    """Deleted files are renamed first, and removed after a delay or at the next start."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=150, retention_ms=100, delete_delay_ms=10))
    for _ in range(3):
        append(log, "a" * 40, timestamp_ms=1000)
    log.retain(2000, 1)
    dead = [name for name in disk.list("t-0") if name.endswith(".deleted")]
    assert dead == [f"{0:020d}.{suffix}.deleted" for suffix in ("index", "log", "timeindex")]
    log.remove_deleted(2009)
    assert disk.exists(f"t-0/{dead[0]}")
    log.remove_deleted(2010)
    log.retain(2000, 2)
    log.close()
    opened(disk)
    assert not [name for name in disk.list("t-0") if name.endswith(".deleted")]


@pytest.mark.parametrize("operations", range(1, 6))
def test_a_deletion_that_was_interrupted_shows_no_aborted_record(operations: int) -> None:
    """Whichever files of the segment a power loss leaves, its records are aborted, or gone."""
    disk = compacted_log.new_disk()
    config = LogConfig(retention_ms=1000, segment_bytes=1200)
    log = compacted_log.opened(disk, config)
    compacted_log.put(log, (b"k", b"aborted"), producer=3, transactional=True, at_ms=1)
    compacted_log.end(log, 3, commit=False)
    compacted_log.roll(log)
    compacted_log.put(log, (b"k", b"new"), at_ms=10**9)
    log.flush()
    point, left = log.recovery_point, [operations]

    def strikes(operation: str, path: str) -> bool:
        left[0] -= 1
        return left[0] < 0

    disk.fails = strikes
    with suppress(StorageError):
        log.retain(10**9, log.end_offset)
    disk.fails = lambda operation, path: False
    disk.kill()
    disk.write(compacted_log.CHECKPOINT, b"%d" % point)
    log = compacted_log.opened(disk, config, clean=False)
    assert [row.value for row in compacted_log.committed_rows(log)] == [b"new"]
