"""A future log copies the current one while that changes, and takes over all of its state."""

from collections.abc import Callable
from uuid import UUID

import pytest

from broker_impl.errors import StorageError
from broker_impl.log import move_rules
from broker_impl.log.aborted_index import Marker
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from tests.broker_impl.log import compacted_log
from tests.broker_impl.log.two_directories import CONFIG, TP, TwoDirectories, append, content

ID = UUID(int=5)


@pytest.fixture
def two() -> TwoDirectories:
    """Two data directories, with nine batches in several segments in the first one."""
    found = TwoDirectories()
    append(found.manager.create(TP, ID), 9)
    return found


def test_a_log_moves(two: TwoDirectories) -> None:
    """A log that has moved has the same batches, epochs, producers and topic, after a crash too."""
    log = two.manager.logs[TP]
    log.assign_epoch(3, log.end_offset)
    before = content(log), log.epochs.entries, log.producers.entries
    assert (two.place(), log.end_offset) == ("a", 9)
    moved = two.move("b")
    assert two.manager.logs[TP] is moved is not log
    assert moved.identity is log.identity
    for _ in range(2):
        moved = two.manager.logs[TP]
        assert two.place() == "b"
        assert (content(moved), moved.epochs.entries[:1]) == (before[0], before[1][:1])
        assert moved.producers.entries == before[2]
        assert moved.topic_id == ID
        assert moved.recovery_point == 9
        assert two.manager.high_watermarks == {TP: 9}
        two.crash()
    assert two.logs_on("a") == []


def test_the_former_directory_is_removed_later(two: TwoDirectories) -> None:
    """The former log is renamed to ``-delete``, and removed after the delay."""
    two.move("b")
    assert two.logs_on("a") == [f"t-0.{1:032x}-delete"]
    two.manager.tick(10, {})
    assert two.logs_on("a") == []


def test_a_copy_follows_a_truncation(two: TwoDirectories) -> None:
    """A truncation of the current log is one of the copy, which then goes on from there."""
    two.begin("b")
    while two.copy():
        pass
    log = two.manager.logs[TP]
    log.truncate_to(4)
    assert two.manager.futures[TP].end_offset == 4
    append(log, 3, epoch=1)
    before = content(log)
    while two.copy():
        pass
    assert content(two.manager.finish_move(TP, 7)) == before


def truncate_and_append(log: PartitionLog) -> None:
    """Follow another leader, who has other records from offset 5 on."""
    log.truncate_to(5)
    append(log, 8, epoch=1)


def compact(log: PartitionLog) -> None:
    """Replace the first record."""
    compacted_log.roll(log)
    assert compacted_log.clean(log)


@pytest.mark.parametrize("change", [truncate_and_append, compact])
def test_a_log_changes_without_the_directory_of_its_copy(
    change: Callable[[PartitionLog], None],
) -> None:
    """When the directory is back, its copy is not what replaces the log (finding 40)."""
    two = TwoDirectories(compacted_log.CONFIG if change is compact else CONFIG)
    log = two.manager.create(TP, ID)
    compacted_log.put(log, (b"k", b"old"))
    for _ in range(8):
        compacted_log.put(log, (b"k", b"new"))
    two.begin("b")
    while two.copy():
        pass
    lost = two.manager.directory_at("b")
    assert lost is not None
    lost.disk.failed(StorageError("I/O error"))
    two.manager.give_up(lost)
    before = content(log)
    change(log)
    assert content(log) != before
    log.flush()
    before = content(log)
    two.start()
    assert content(two.manager.logs[TP]) == before
    while two.copy():
        pass
    assert content(two.manager.finish_move(TP, 9)) == before


def test_a_log_that_starts_over_is_copied_from_its_new_start(two: TwoDirectories) -> None:
    """A full truncation empties the copy also."""
    two.begin("b")
    two.copy(1)
    log = two.manager.logs[TP]
    log.truncate_fully_and_start_at(40)
    append(log, 2)
    moved = two.move("b")
    assert (moved.start_offset, moved.end_offset) == (40, 42)


def test_a_copy_that_was_emptied_in_vain_starts_over(two: TwoDirectories) -> None:
    """A crash after the copy was emptied, and before the log is, loses no record in the move."""
    before = content(two.manager.logs[TP])
    two.begin("b")
    two.copy(1)
    two.manager.logs[TP].flush()
    two.disks["a"].fails = lambda operation, path: operation == "remove"
    with pytest.raises(StorageError):
        two.manager.logs[TP].truncate_fully_and_start_at(40)
    two.disks["a"].fails = lambda operation, path: False
    two.crash()
    while two.copy():
        pass
    assert content(two.manager.finish_move(TP, 9)) == before


@pytest.mark.parametrize("copied_before", [0, 1, 20])
def test_a_copy_follows_the_start(two: TwoDirectories, copied_before: int) -> None:
    """Deleted records are deleted in the copy; producers whose records are gone stay known."""
    log = two.manager.logs[TP]
    two.begin("b")
    for _ in range(copied_before):
        two.copy(1)
    for _ in range(30):  # the records of producer 7 are deleted below
        append(log, producer=8)
    log.advance_start(35)
    log.retain(0, 39)
    assert log.segments[0].base_offset > 9
    producers = dict(log.producers.entries)
    moved = two.move("b")
    assert (moved.start_offset, moved.end_offset) == (35, 39)
    assert content(moved) == content(two.manager.logs[TP])
    two.manager.checkpoint({TP: 39})
    two.crash()
    found = two.manager.logs[TP]
    assert (found.start_offset, found.end_offset) == (35, 39)
    assert found.producers.entries == producers


def test_aborted_transactions_move(two: TwoDirectories) -> None:
    """The index of aborted transactions of the new log has those of the former one."""
    log = two.manager.logs[TP]
    data = batch.encode_batch(
        [Record(value=b"v")], producer_id=3, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.append_as_leader(data, leader_epoch=0, now_ms=0, guard=log.producers.guard(3))
    log.append_marker(Marker(3, 0, is_commit=False, coordinator_epoch=0), leader_epoch=0, now_ms=0)
    before = log.all_aborted
    assert before
    assert two.move("b").all_aborted == before


def test_the_cleaners_offset_moves(two: TwoDirectories) -> None:
    """How far a log is compacted stays known, also after a restart."""
    two.manager.logs[TP].compacted_to(5)
    assert two.move("b").first_dirty == 5
    two.crash()
    assert two.manager.logs[TP].first_dirty == 5


def test_an_unfinished_move_goes_on(two: TwoDirectories) -> None:
    """After a restart the log is copied again."""
    two.begin("b")
    two.copy(1)
    two.manager.close({TP: 9})
    two.start()
    assert two.manager.futures[TP].end_offset == 0
    before = content(two.manager.logs[TP])
    while two.copy():
        pass
    assert content(two.manager.finish_move(TP, 9)) == before


def test_each_interruption_leaves_one_log(two: TwoDirectories) -> None:
    """A power loss before any operation of a replacement leaves one whole log."""
    for step in range(200):
        two = TwoDirectories()
        append(two.manager.create(TP, ID), 9)
        log = two.manager.logs[TP]
        log.advance_start(2)
        log.flush()
        two.manager.checkpoint({TP: 8})
        before = content(log)
        two.begin("b")
        while two.copy():
            pass
        left = [step]

        def strikes(operation: str, path: str, left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] < 0

        for disk in two.disks.values():
            disk.fails = strikes
        try:
            two.manager.finish_move(TP, 8)
        except StorageError:
            ended = False
            assert log.offline is not None or "t-0" in two.logs_on("a")
        else:
            ended = True
        for disk in two.disks.values():
            disk.fails = lambda operation, path: False
        two.crash()
        assert content(two.manager.logs[TP]) == before
        assert two.manager.logs[TP].start_offset == 2
        assert two.manager.high_watermarks == {TP: 8}
        names = two.logs_on("a") + two.logs_on("b")
        assert names.count("t-0") == 1
        assert len(names) - 1 == len(two.manager.futures)
        if ended:
            return
    raise AssertionError("the replacement has more operations than were tried")


def test_a_damaged_move_takes_the_log_offline(two: TwoDirectories) -> None:
    """After a failed replacement nothing is appended: the log may be in either directory."""
    two.begin("b")
    while two.copy():
        pass
    log = two.manager.logs[TP]
    assert move_rules.may_replace(two.manager.futures[TP].end_offset, log.end_offset)
    two.disks["b"].fails = lambda operation, path: operation == "rename"
    with pytest.raises(StorageError):
        two.manager.finish_move(TP, 9)
    with pytest.raises(StorageError, match="offline"):
        append(log)
