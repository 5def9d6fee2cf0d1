"""One of several data directories fails, and the logs in the others stay (KIP-112)."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker_impl.errors import DirectoryFailed, DirectoryInUse, StorageError
from broker_impl.log.directory import CLEAN_SHUTDOWN, LogDirectory
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.log.two_directories import CONFIG, TP, TwoDirectories, append, content

OTHER = TopicPartition("t", 1)
THIRD = TopicPartition("t", 2)


class Two(TwoDirectories):
    """Partition 0 in "a", partition 1 in "b", and the directories that were reported as failed."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: list[str] = []
        for tp in (TP, OTHER):
            append(self.manager.create(tp), 9)
        self.manager.on_failure = lambda directory: self.failed.append(directory.path)

    def break_down(self, path: str) -> None:
        """From now on every operation on this directory fails."""
        self.disks[path].fails = lambda operation, name: True

    def repair(self, path: str) -> None:
        """From now on no operation fails."""
        self.disks[path].fails = lambda operation, name: False

    def directory(self, path: str) -> LogDirectory:
        """A data directory of the manager."""
        found = self.manager.directory_at(path)
        assert found is not None
        return found

    def give_up(self, path: str) -> list[TopicPartition]:
        """Give up a directory."""
        return self.manager.give_up(self.directory(path))


@pytest.fixture
def two() -> Two:
    """Two data directories with a log each."""
    return Two()


def test_the_logs_in_a_failed_directory_are_given_up(two: Two) -> None:
    """The other logs stay; the failed directory is not touched, even if its disk works again."""
    two.break_down("a")
    with pytest.raises(DirectoryFailed):
        append(two.manager.logs[TP])
    assert (two.failed, two.manager.goes_on) == (["a"], True)
    assert two.give_up("a") == [TP]
    assert list(two.manager.logs) == [OTHER]
    two.repair("a")
    before = two.disks["a"].read("recovery-point-offset-checkpoint")
    append(two.manager.logs[OTHER])
    two.manager.checkpoint({OTHER: 10})
    assert two.manager.tick(1000, {OTHER: 10}) == []
    two.manager.close({OTHER: 10})
    assert two.disks["a"].read("recovery-point-offset-checkpoint") == before
    assert not two.disks["a"].exists(CLEAN_SHUTDOWN)
    assert two.disks["b"].exists(CLEAN_SHUTDOWN)


def test_a_failure_in_one_directory_stops_no_work_in_others(two: Two) -> None:
    """Checkpoints, retention and syncs of the other directory are done in the same turn."""
    two.break_down("a")
    two.manager.logs[OTHER].advance_start(5)
    two.manager.checkpoint({TP: 9, OTHER: 9})
    two.manager.write_starts(OTHER)
    with pytest.raises(DirectoryFailed):
        two.manager.write_starts(TP)
    assert two.failed == ["a"]
    assert b"t 1 9" in two.disks["b"].read("replication-offset-checkpoint")
    assert b"t 1 5" in two.disks["b"].read("log-start-offset-checkpoint")
    two.config = replace(CONFIG, retention_bytes=0)
    two.manager.reconfigure()
    assert two.manager.tick(1, {TP: 9, OTHER: 9}) == [OTHER]
    assert two.manager.logs[OTHER].start_offset > 5


def test_the_last_directory_that_fails_ends_the_broker(two: Two) -> None:
    """If no directory works, each operation raises the failure."""
    two.break_down("a")
    two.manager.checkpoint({})
    two.give_up("a")
    two.break_down("b")
    with pytest.raises(StorageError):
        append(two.manager.logs[OTHER])
    assert not two.manager.goes_on
    with pytest.raises(StorageError):
        two.manager.close({})


def test_a_single_directory_that_fails_is_not_given_up() -> None:
    """With one directory the failure is raised as ever, and nothing goes on."""
    two = TwoDirectories()
    del two.disks["b"]
    two.start()
    log = two.manager.create(TP)
    two.disks["a"].fails = lambda operation, path: operation == "append"
    with pytest.raises(StorageError):
        append(log)
    assert not two.manager.goes_on


def test_a_new_log_is_created_where_it_can_be(two: Two) -> None:
    """A new log gets a directory that works, also if the preferred one fails just then."""
    two.manager.prefer(THIRD, two.directory("a"))
    two.break_down("a")
    append(two.manager.create(THIRD))
    assert two.place(THIRD) == "b"
    assert two.failed == ["a"]


def test_a_copy_ends_with_its_directory(two: Two) -> None:
    """A log whose copy is in the failed directory stays, and can be truncated and changed."""
    two.begin("b")
    two.copy()
    two.break_down("b")
    two.manager.logs[TP].truncate_to(4)
    two.manager.logs[TP].truncate_fully_and_start_at(2)
    assert two.failed == ["b"]
    assert two.give_up("b") == [OTHER]
    assert (list(two.manager.logs), two.manager.futures) == ([TP], {})
    assert two.manager.logs[TP].future is None
    append(two.manager.logs[TP])
    assert two.manager.logs[TP].end_offset == 3


def test_the_copy_of_a_lost_log_waits_for_it(two: Two) -> None:
    """A start without the failed directory leaves the copy alone; with it the move goes on."""
    two.begin("b")
    two.copy()
    before = content(two.manager.logs[TP])
    two.break_down("a")
    two.manager.checkpoint({})
    assert two.give_up("a") == [TP]
    assert two.manager.futures == {}
    two.start()
    assert (list(two.manager.logs), two.manager.futures) == ([OTHER], {})
    two.repair("a")
    two.start()
    assert sorted(two.manager.logs) == [TP, OTHER]
    assert content(two.move("b")) == before


def after_restart(two: Two) -> tuple[int, int, int]:
    """Repair and start again after a checkpoint; start, end and high watermark of the log then."""
    for path in two.disks:
        two.repair(path)
    two.start()
    log = two.manager.logs[TP]
    return log.start_offset, log.end_offset, two.manager.high_watermarks[TP]


@pytest.mark.parametrize(
    ("broken", "operation", "path"),
    [("b", "write", "copy-is-complete"), ("a", "write", ""), ("a", "rename", "")],
)
def test_offsets_survive_a_move_that_fails(
    two: Two, broken: str, operation: str, path: str
) -> None:
    """Checkpoints keep the entries of a log whose move has failed, also in the other directory."""
    two.manager.logs[TP].advance_start(2)
    two.manager.checkpoint({TP: 8})
    two.begin("b")
    while two.copy():
        pass
    two.disks[broken].fails = lambda each, name: each == operation and path in name
    with pytest.raises(DirectoryFailed):
        two.manager.finish_move(TP, 8)
    two.give_up(broken)
    two.manager.checkpoint({})
    assert after_restart(two) == (2, 9, 8)


def test_a_copy_that_fails_before_the_switch_ends_alone(two: Two) -> None:
    """Until the copy is complete, its failure leaves the log where it is, and in use."""
    two.begin("b")
    while two.copy():
        pass
    two.disks["b"].fails = lambda operation, path: "complete" in path
    with pytest.raises(DirectoryFailed):
        two.manager.finish_move(TP, 9)
    assert two.give_up("b") == [OTHER]
    append(two.manager.logs[TP])
    assert (two.place(), two.manager.logs[TP].future) == ("a", None)


def test_offsets_survive_a_start_without_the_source_of_a_move(two: Two) -> None:
    """A complete copy waits with its entries for the directory from which its log has moved."""
    two.manager.logs[TP].advance_start(2)
    two.manager.checkpoint({TP: 8})
    two.begin("b")
    while two.copy():
        pass
    two.disks["b"].fails = lambda operation, path: operation == "rename"
    with pytest.raises(DirectoryFailed):
        two.manager.finish_move(TP, 8)
    two.repair("b")
    two.break_down("a")
    two.start()
    assert list(two.manager.logs) == [OTHER]
    two.manager.checkpoint({})
    assert after_restart(two) == (2, 9, 8)


@pytest.mark.parametrize("operation", ["fsync_dir", "open", "write"])
def test_a_log_that_was_half_created_is_not_created_elsewhere(two: Two, operation: str) -> None:
    """Two directories with a log of one partition would prevent the next start."""
    two.disks["a"].fails = lambda each, path: each == operation
    two.manager.prefer(THIRD, two.directory("a"))
    with pytest.raises(DirectoryFailed):
        two.manager.create(THIRD, UUID(int=3))
    assert THIRD not in two.manager.logs
    assert two.logs_on("b").count(str(THIRD)) == 0


def test_a_directory_that_failed_just_before_the_end_has_no_clean_marker(two: Two) -> None:
    """A directory is not clean if it failed in this life, even if it works again at the end."""
    two.disks["a"].fails = lambda operation, path: operation == "append"
    with pytest.raises(DirectoryFailed):
        append(two.manager.logs[TP])
    two.repair("a")
    two.manager.close({})
    assert not two.disks["a"].exists(CLEAN_SHUTDOWN)
    assert two.disks["b"].exists(CLEAN_SHUTDOWN)
    two.start()
    assert len(content(two.manager.logs[TP])) == 9


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_log_is_lost_if_its_move_fails_at_the_end(two: Two, broken: str) -> None:
    """If it is not known which directory has the log, it is given up; a start finds it whole."""
    two.begin("b")
    while two.copy():
        pass
    before = content(two.manager.logs[TP])
    two.disks[broken].fails = lambda operation, path: operation == "rename"
    with pytest.raises(DirectoryFailed):
        two.manager.finish_move(TP, 9)
    assert two.failed == [broken]
    assert TP in two.give_up(broken)
    assert (TP in two.manager.logs, OTHER in two.manager.logs) == (False, broken == "a")
    two.repair(broken)
    two.start()
    assert content(two.manager.logs[TP]) == before


@pytest.mark.parametrize("operation", ["read", "fsync_dir", "open", "remove"])
def test_a_directory_that_fails_at_the_start_is_left_out(two: Two, operation: str) -> None:
    """A start goes on without a directory that fails; it has all logs after the repair."""
    two.manager.close({})
    two.disks["a"].fails = lambda each, path: each == operation
    two.start()
    assert list(two.manager.logs) == [OTHER]
    assert (two.manager.goes_on, two.directory("a").failure is not None) == (True, True)
    two.repair("a")
    two.start()
    assert [len(content(two.manager.logs[tp])) for tp in (TP, OTHER)] == [9, 9]
    assert not two.manager.goes_on


def test_a_start_needs_one_directory(two: Two) -> None:
    """A start is refused if all directories fail, or if another broker has locked one."""
    for path in two.disks:
        two.break_down(path)
    with pytest.raises(StorageError):
        two.start()
    for path in two.disks:
        two.repair(path)
    two.start()
    two.disks["a"] = Locked()
    with pytest.raises(DirectoryInUse):
        two.start()


class Locked(MemoryDisk):
    """A directory that another broker uses."""

    def unlock(self) -> None:
        """Do nothing: the lock is another broker's."""
        self._locked = True
