"""A data directory: its owner, the files that survive restarts, and the clean-shutdown marker."""

import pytest

from broker_impl.errors import ConfigError, StorageError
from broker_impl.log.aborted_index import Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition

MARKER = ".kafka_cleanshutdown"
AT_ONCE = {"leader_epoch": 0, "now_ms": 0}
A, B = TopicPartition("a.b-c", 0), TopicPartition("b", 12)
CONFIG = LogConfig(segment_bytes=200, delete_delay_ms=10, retention_ms=1000, segment_ms=500)


def opened(
    disk: MemoryDisk,
    *,
    broker_id: int = 1,
    cluster_id: str | None = "c",
    config: LogConfig = CONFIG,
) -> LogManager:
    manager = LogManager(
        {"": disk}, lambda topic: config, broker_id=broker_id, cluster_id=cluster_id
    )
    manager.open(0)
    return manager


def append(log: PartitionLog, count: int = 1, timestamp_ms: int = 0) -> None:
    for _ in range(count):
        data = batch.encode_batch([Record(value=b"x" * 40, timestamp_ms=timestamp_ms)])
        log.append_as_leader(data, leader_epoch=0, now_ms=0)


def test_logs_are_found_again() -> None:
    """Every log, its high watermark and its start offset come back after a clean shutdown."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 5)
    append(manager.create(B), 2)
    manager.logs[A].advance_start(3)
    manager.close({A: 4, B: 2})
    disk.crash()
    again = opened(disk)
    assert list(again.logs) == [A, B]
    assert again.high_watermarks == {A: 4, B: 2}
    assert (again.logs[A].start_offset, again.logs[A].end_offset) == (3, 5)
    assert again.logs[A].recovery_point == 5


def test_files_are_kafkas() -> None:
    """Names and formats in the data directory are those of Apache Kafka."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A))
    manager.close({A: 1})
    assert disk.list("") == [
        ".kafka_cleanshutdown",
        "a.b-c-0",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    assert disk.read("meta.properties") == b"version=0\nbroker.id=1\ncluster.id=c\n"
    assert disk.read("replication-offset-checkpoint") == b"0\n1\na.b-c 0 1\n"
    assert disk.read("recovery-point-offset-checkpoint") == b"0\n1\na.b-c 0 1\n"
    assert disk.list("a.b-c-0") == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000001.snapshot",
        "leader-epoch-checkpoint",
    ]


def test_a_foreign_directory_is_refused() -> None:
    """The directory of another broker or cluster is refused untouched, with both ids named."""
    disk = MemoryDisk()
    opened(disk).close({})
    with pytest.raises(ConfigError, match="belongs to broker 1, not to broker 2"):
        opened(disk, broker_id=2)
    disk.unlock()
    with pytest.raises(ConfigError, match="belongs to cluster c, not to cluster d"):
        opened(disk, cluster_id="d")
    assert disk.exists(".kafka_cleanshutdown")


def test_the_cluster_is_learnt_from_the_directory() -> None:
    """A broker without a cluster id takes it from the directory; a known id is written there."""
    disk = MemoryDisk()
    opened(disk, cluster_id=None).close({})
    assert b"cluster.id" not in disk.read("meta.properties")
    opened(disk, cluster_id="c").close({})
    assert opened(disk, cluster_id=None).cluster_id == "c"


def test_a_held_directory_is_refused() -> None:
    """A directory that another broker has locked is refused, and is free after that one stops."""
    disk = MemoryDisk()
    first = opened(disk)
    with pytest.raises(StorageError, match="locked"):
        opened(disk)
    first.close({})
    opened(disk)


def test_what_is_not_ours_is_left_alone() -> None:
    """Files and directories with other names are never changed."""
    disk = MemoryDisk()
    disk.write("notes.txt", b"mine")
    disk.write("file-0", b"mine")
    for name in ("lost+found", "no partition", "a-01", "x.abc-delete"):
        disk.make_dir(name)
        disk.write(f"{name}/file", b"mine")
    manager = opened(disk)
    assert manager.logs == {}
    manager.close({})
    assert disk.read("notes.txt") == disk.read("file-0") == b"mine"
    for name in ("lost+found", "no partition", "a-01", "x.abc-delete"):
        assert disk.read(f"{name}/file") == b"mine"


def test_the_clean_marker_counts_once() -> None:
    """KAFKA-10471: a broker that dies while it loads leaves no clean-shutdown marker."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 2)
    manager.close({})
    disk.fails = lambda operation, path: path.startswith("a.b-c-0")
    with pytest.raises(StorageError):
        opened(disk)
    disk.fails = lambda operation, path: False
    assert not disk.exists(".kafka_cleanshutdown")


def test_an_aborted_start_leaves_no_clean_marker() -> None:
    """KAFKA-15375: a start that fails before all logs are loaded leaves no clean marker."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 2)
    disk.kill()
    disk.fails = lambda operation, path: path.startswith("a.b-c-0")
    aborted = LogManager({"": disk}, lambda topic: CONFIG, broker_id=1, cluster_id="c")
    with pytest.raises(StorageError):
        aborted.open(0)
    disk.fails = lambda operation, path: False
    aborted.close({})
    assert not disk.exists(".kafka_cleanshutdown")


def test_a_failed_disk_leaves_no_clean_marker() -> None:
    """A log that cannot be synced prevents the clean-shutdown marker."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 2)
    disk.fails = lambda operation, path: operation == "fsync"
    with pytest.raises(StorageError):
        manager.close({})
    disk.fails = lambda operation, path: False
    assert not disk.exists(".kafka_cleanshutdown")


def test_after_a_crash_the_tail_is_checked() -> None:
    """Without the marker, loading finds and cuts off a torn batch; with it, the log is trusted."""
    disk = MemoryDisk()
    manager = opened(disk, config=LogConfig())
    append(manager.create(A), 2)
    manager.checkpoint({A: 1})
    disk.open("a.b-c-0/00000000000000000000.log").append([b"torn"])
    disk.kill()
    again = opened(disk, config=LogConfig())
    assert again.logs[A].end_offset == 2
    assert again.high_watermarks == {A: 1}


def test_a_checkpoint_forgets_no_high_watermark() -> None:
    """KAFKA-1647: a checkpoint keeps the last high watermark of partitions that it is not given."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 3)
    append(manager.create(B), 3)
    manager.checkpoint({A: 3, B: 2})
    manager.checkpoint({A: 1, TopicPartition("gone", 0): 9})
    disk.crash()
    again = opened(disk)
    assert again.high_watermarks == {A: 1, B: 2}


def test_a_checkpoint_that_says_nothing_new_is_not_written() -> None:
    """A checkpoint without changes is not written: each write costs two blocking syncs."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 3)
    manager.checkpoint({A: 1})
    written: list[str] = []

    def note(operation: str, path: str) -> bool:
        if operation == "write":
            written.append(path)
        return False

    disk.fails = note
    manager.checkpoint({A: 1})
    assert written == []
    manager.checkpoint({A: 2})
    assert written == ["replication-offset-checkpoint"]
    disk.crash()
    assert opened(disk).high_watermarks == {A: 2}


def test_a_deleted_log_is_gone_at_once_and_its_files_later() -> None:
    """A deleted log's directory is renamed at once, and removed later or at the next start."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 3)
    append(manager.create(B), 3)
    manager.checkpoint({A: 3})
    manager.delete(A)
    assert A not in manager.logs
    (dead,) = [name for name in disk.list("") if name.endswith("-delete")]
    assert dead.startswith("a.b-c-0.")
    manager.tick(9, {})
    assert disk.exists(dead)
    manager.tick(10, {})
    assert not disk.exists(dead)
    manager.delete(B)
    disk.crash()
    assert opened(disk).logs == {}
    assert not [name for name in disk.list("") if name.endswith("-delete")]


def test_a_log_of_the_same_name_inherits_nothing() -> None:
    """A partition that is created again has offset 0, no watermark and no recovery point."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 9)
    manager.logs[A].flush()
    manager.checkpoint({A: 9})
    manager.delete(A)
    append(manager.create(A), 2)
    disk.kill()
    again = opened(disk)
    assert again.high_watermarks == {}
    log = again.logs[A]
    assert (log.start_offset, log.end_offset, log.recovery_point) == (0, 2, 0)


def test_a_log_of_the_same_name_is_not_compacted() -> None:
    """Also if the former one was compacted by an earlier process, and is deleted at the start."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 9)
    manager.logs[A].compacted_to(8)
    manager.close({A: 9})
    manager = opened(disk)
    manager.delete(A)
    append(manager.create(A), 9)
    manager.close({A: 9})
    assert opened(disk).logs[A].first_dirty == 0


def test_a_long_name_can_be_deleted() -> None:
    """A topic's name may have 249 characters; the name of its deleted directory is cut to 255."""
    disk = MemoryDisk()
    manager = opened(disk)
    tp = TopicPartition("x" * 249, 10)
    manager.create(tp)
    manager.delete(tp)
    (dead,) = [name for name in disk.list("") if name.endswith("-delete")]
    assert len(dead) == 255


def test_a_new_log_survives_a_crash() -> None:
    """The directory of a new log is synced before the first append."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 2)
    manager.logs[A].flush()
    disk.crash()
    assert opened(disk).logs[A].end_offset == 2


def test_a_clean_end_counts_once_though_the_next_start_is_killed() -> None:
    """The clean-shutdown marker is removed durably before a log is opened (docs/findings/0004).

    This includes a marker that an earlier, killed start removed. If a power loss brought the
    marker back, a torn log would be taken for a whole one.
    """
    disk = MemoryDisk()
    opened(disk).close({})
    disk.fails = lambda operation, path: operation == "fsync_dir" and not disk.exists(MARKER)
    with pytest.raises(StorageError):
        opened(disk)
    disk.fails = lambda operation, path: False
    disk.kill()
    opened(disk)
    disk.crash()
    assert not disk.exists(MARKER)


def test_a_name_that_a_killed_broker_made_survives() -> None:
    """A log directory whose creator was killed is synced at the next start, before any append."""
    disk = MemoryDisk()
    manager = opened(disk)
    disk.fails = lambda operation, path: operation == "fsync_dir"
    with pytest.raises(StorageError):
        manager.create(A)
    disk.fails = lambda operation, path: False
    disk.kill()
    log = opened(disk).logs[A]
    append(log, 2)
    log.flush()
    disk.crash()
    assert opened(disk).logs[A].end_offset == 2


def test_a_truncation_reaches_the_recovery_checkpoint() -> None:
    """A truncation lowers the recovery checkpoint, so that later appends do not count as synced."""
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 9)
    manager.logs[A].flush()
    manager.checkpoint({})
    manager.logs[A].truncate_to(2)
    assert disk.read("recovery-point-offset-checkpoint") == b"0\n1\na.b-c 0 2\n"


@pytest.mark.parametrize("start", [0, 7])
def test_a_truncation_reaches_the_other_checkpoints(start: int) -> None:
    """What is appended after it is neither compacted nor before the start (KAFKA-3330)."""
    disk = MemoryDisk()
    manager = opened(disk)
    log = manager.create(A)
    append(log, 9)
    log.advance_start(start)
    log.compacted_to(8)
    log.flush()
    manager.checkpoint({})
    log.truncate_to(5)
    append(log, 6)
    log.flush()
    disk.kill()
    log = opened(disk).logs[A]
    assert (log.start_offset, log.first_dirty, log.end_offset) == (min(start, 5), 5, 11)


def test_a_truncation_that_was_killed_lowers_the_cleaners_checkpoint() -> None:
    """A start does, before the first append."""
    disk = MemoryDisk()
    manager = opened(disk)
    log = manager.create(A)
    append(log, 9)
    log.compacted_to(8)
    log.flush()
    manager.checkpoint({})
    disk.fails = lambda operation, path: path == "cleaner-offset-checkpoint"
    with pytest.raises(StorageError):
        log.truncate_to(2)
    disk.fails = lambda operation, path: False
    disk.kill()
    append(opened(disk).logs[A], 9)
    disk.kill()
    assert opened(disk).logs[A].first_dirty == 2


def test_a_truncation_that_was_killed_lowers_the_recovery_checkpoint() -> None:
    """A start lowers the recovery point that an interrupted truncation left (docs/findings/0006).

    It does so before the first append. Otherwise the next start would take appends below the old
    recovery point for synced.
    """
    disk = MemoryDisk()
    manager = opened(disk)
    append(manager.create(A), 9)
    manager.logs[A].flush()
    manager.checkpoint({})
    disk.fails = lambda operation, path: path == "recovery-point-offset-checkpoint"
    with pytest.raises(StorageError):
        manager.logs[A].truncate_to(2)
    disk.fails = lambda operation, path: False
    disk.kill()
    append(opened(disk).logs[A], 9)
    disk.kill()
    log = opened(disk).logs[A]
    assert (log.recovery_point, log.end_offset) == (2, 11)
    log.flush()
    disk.crash()
    assert opened(disk).logs[A].end_offset == 11


@pytest.mark.parametrize(
    "name",
    ["replication-offset-checkpoint", "recovery-point-offset-checkpoint", "meta.properties"],
)
def test_a_malformed_file_ends_the_start(name: str) -> None:
    """A malformed checkpoint file fails the start with an error that names the file."""
    disk = MemoryDisk()
    opened(disk).close({})
    disk.write(name, b"\xff")
    with pytest.raises(StorageError, match=name):
        opened(disk)


def test_what_is_due_is_done() -> None:
    """A tick syncs by `flush.ms`, rolls and deletes segments by age, and expires producers."""
    disk = MemoryDisk()
    config = LogConfig(
        segment_ms=500,
        retention_ms=1000,
        flush_ms=100,
        delete_delay_ms=10,
        producer_expiration_ms=1,
    )
    manager = opened(disk, config=config)
    log = manager.create(A)
    sent = batch.encode_batch(
        [Record(timestamp_ms=0)], producer_id=1, producer_epoch=0, base_sequence=0
    )
    log.append_as_leader(sent, leader_epoch=0, now_ms=0)
    manager.tick(99, {})
    assert log.recovery_point == 0
    manager.tick(100, {})
    assert log.recovery_point == 1
    manager.tick(501, {})
    assert log.segment_offsets == [0, 1]
    assert manager.tick(1001, {}) == []
    assert log.start_offset == 0  # no high watermark is known, so it counts as 0
    assert manager.tick(1001, {A: 1}) == [A]
    assert log.start_offset == 1
    assert manager.tick(1011, {A: 1}) == []
    assert not [name for name in disk.list(str(A)) if name.endswith(".deleted")]
    assert log.producers.entries != {}
    manager.tick(600_000, {A: 1})
    assert log.producers.entries == {}


def test_ended_transactions_are_forgotten_in_a_log_that_is_not_read() -> None:
    """As soon as their markers are committed; a replica may never be read."""
    manager = opened(MemoryDisk())
    log = manager.create(A)
    for _ in range(3):
        entry = log.producers.entries.get(3)
        data = batch.encode_batch(
            [Record(value=b"v")],
            producer_id=3,
            producer_epoch=0,
            base_sequence=0 if entry is None else entry.last_sequence + 1,
            transactional=True,
        )
        log.append_as_leader(data, leader_epoch=0, now_ms=0, guard=log.producers.guard(3))
        log.append_marker(Marker(3, 0, is_commit=True, coordinator_epoch=0), **AT_ONCE)
    before = len(log.producers.encode())
    for watermark, kept in ((1, 3), (2, 2), (6, 0)):
        manager.tick(0, {A: watermark})
        assert log.producers.unsettled == kept
    assert len(log.producers.encode()) == before


def test_silent_producers_are_looked_for_as_often_as_it_is_told() -> None:
    """Producers expire only at the checks of producer.id.expiration.check.interval.ms."""
    disk = MemoryDisk()
    config = LogConfig(producer_expiration_ms=1)
    manager = LogManager(
        {"": disk}, lambda topic: config, broker_id=1, cluster_id="c", producer_check_ms=1000
    )
    manager.open(0)
    log = manager.create(A)
    sent = batch.encode_batch(
        [Record(timestamp_ms=0)], producer_id=1, producer_epoch=0, base_sequence=0
    )
    log.append_as_leader(sent, leader_epoch=0, now_ms=0)
    manager.tick(999, {})
    assert list(log.producers.entries) == [1]
    manager.tick(1000, {})
    assert not log.producers.entries


def test_retention_looks_as_often_as_it_is_told() -> None:
    """Segments are deleted only at the checks of log.retention.check.interval.ms."""
    disk = MemoryDisk()
    config = LogConfig(retention_ms=1, segment_ms=1, delete_delay_ms=0)
    manager = LogManager(
        {"": disk}, lambda topic: config, broker_id=1, cluster_id="c", retention_check_ms=1000
    )
    manager.open(0)
    log = manager.create(A)
    sent = batch.encode_batch([Record(timestamp_ms=0)])
    log.append_as_leader(sent, leader_epoch=0, now_ms=0)
    log.roll_if_due(500)
    manager.tick(999, {A: 1})
    assert log.start_offset == 0
    manager.tick(1000, {A: 1})
    assert log.start_offset == 1
