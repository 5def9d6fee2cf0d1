import pytest

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from tests.broker_impl.log.one_log import (
    SMALL,
    TP,
    append,
    idempotent,
    new_disk,
    opened,
    read_all,
    records,
)


def test_truncation_removes_the_batch_and_all_behind() -> None:
    """A truncation removes records, epochs, producers and index entries, now and after a crash."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        sent = batch.encode_batch(
            records(f"v{number}" * 20, timestamp_ms=1000 + number),
            producer_id=5,
            producer_epoch=0,
            base_sequence=number,
        )
        log.append_as_leader(sent, leader_epoch=number // 4, now_ms=0)
    log.flush()
    log.truncate_to(5)
    assert log.recovery_point == log.end_offset == 5
    assert log.epochs.entries == ((0, 0), (1, 4))
    assert log.producers.entries[5].last_sequence == 4
    assert log.offset_for_timestamp(1005) is None
    disk.crash()
    again = opened(disk, clean=False, recovery_point=5)
    assert read_all(again) == read_all(log)
    assert again.producers.entries[5].last_sequence == 4
    append(again, "x", epoch=3)
    assert read_all(again)[-1] == (5, "x")


def test_truncation_within_a_batch_removes_it_whole() -> None:
    """A truncation within a batch removes the whole batch."""
    log = opened(new_disk(), LogConfig())
    append(log, "a")
    append(log, "b", "c", "d")
    log.truncate_to(2)
    assert log.end_offset == 1


def test_truncation_behind_the_end_still_cuts_epochs() -> None:
    """KAFKA-10706: a truncation at the log end removes an epoch that starts there."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a")
    log.assign_epoch(1, 1)
    log.truncate_to(2)
    assert log.epochs.latest == 1
    log.truncate_to(1)
    assert log.epochs.entries == ((0, 0),)
    assert b"1 1" not in disk.read("t-0/leader-epoch-checkpoint")


def test_truncation_says_that_the_recovery_point_went_back() -> None:
    """A truncation below the recovery point writes the lower recovery point at once.

    With the old one, a restart after a crash would trust records that were never synced.
    """
    told: list[int] = []
    disk = new_disk()
    log = PartitionLog.open(
        disk, "t-0", TP, SMALL,
        clean=True, recovery_point=0, start_offset=0, now_ms=0,
        write_recovery_point=lambda: told.append(log.recovery_point),
    )  # fmt: skip
    append(log, "a")
    append(log, "b")
    log.truncate_to(1)
    assert told == []
    log.flush()
    log.truncate_to(0)
    assert told == [0]


def test_a_log_can_start_anew_at_any_offset() -> None:
    """`truncate_fully_and_start_at` removes all records, producers and epochs durably."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    for offset in (100, 40):
        log.truncate_fully_and_start_at(offset)
        assert (log.start_offset, log.end_offset) == (offset, offset)
        assert log.epochs.entries == ()
        assert log.producers.entries == {}
        assert disk.list("t-0") == sorted(
            [f"{offset:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]
            + ["leader-epoch-checkpoint"]
        )
    append(log, "a")
    disk.crash()
    assert opened(disk, clean=False).start_offset == 40


def test_truncation_below_the_first_segment_starts_anew_there() -> None:
    """A truncation below the first segment empties the log, which then starts at that offset."""
    log = opened(new_disk())
    log.truncate_fully_and_start_at(100)
    append(log, "a")
    log.truncate_to(50)
    assert (log.start_offset, log.end_offset) == (50, 50)


def test_the_start_advances_and_is_obeyed() -> None:
    """Advancing the start hides older records and removes their epochs, up to the log end."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20, epoch=number // 4)
    log.advance_start(6)
    log.advance_start(3)
    assert log.start_offset == 6
    assert read_all(log)[0] == (6, "v6" * 20)
    assert log.epochs.entries == ((1, 6), (2, 8))
    with pytest.raises(ApiError) as refused:
        log.advance_start(13)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.retain(0, 12) == [f"{offset:020d}.log" for offset in (0, 3)]
    log.close()
    assert opened(disk, start_offset=6).start_offset == 6


@pytest.mark.parametrize(("start", "cut"), [(6, ((1, 6), (2, 8))), (12, ((2, 12),))])
def test_a_start_that_was_not_written_down_takes_no_epochs(
    start: int, cut: tuple[tuple[int, int], ...]
) -> None:
    """Epochs that an unsaved start offset removed are rebuilt after a crash.

    Epochs are cut at once when the start advances, but the start offset is checkpointed later.
    Records that are readable again after a crash need their epochs again.
    """
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20, epoch=number // 4)
    log.advance_start(start)
    assert log.epochs.entries == cut
    again = opened(disk, clean=False)
    assert again.start_offset == 0
    assert again.epochs.entries == ((0, 0), (1, 4), (2, 8))


def test_a_log_that_ends_before_its_start_begins_anew() -> None:
    """A log that ends before its checkpointed start is emptied, and starts at that offset.

    The start was checkpointed, but the records were not synced.
    """
    disk = new_disk()
    log = opened(disk)
    log.append_as_leader(idempotent(0), leader_epoch=0, now_ms=0)
    log.roll_if_due(10**10)
    append(log, "b", "c")
    disk.crash()
    again = opened(disk, clean=False, start_offset=2)
    assert (again.start_offset, again.end_offset) == (2, 2)
    assert again.cuts == [2]
    assert again.epochs.entries == ()
    assert again.producers.entries == {}
