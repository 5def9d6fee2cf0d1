"""Several data directories: their owner, where logs are created, and what a start finds."""

import pytest

from broker_impl.errors import ConfigError, StorageError
from broker_impl.log.directory import fits_a_future_name
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.log.two_directories import CONFIG, TP, TwoDirectories, append, content

OTHERS = [TopicPartition("u", number) for number in range(4)]


@pytest.fixture
def two() -> TwoDirectories:
    """Two empty data directories."""
    return TwoDirectories()


def test_each_directory_has_all_files(two: TwoDirectories) -> None:
    """Every directory has an owner, a clean marker, and the checkpoints of its own logs."""
    append(two.manager.create(TP), 2)
    append(two.manager.create(OTHERS[0]), 3)
    two.manager.close({TP: 1, OTHERS[0]: 2})
    for path, line in (("a", b"t 0 1"), ("b", b"u 0 2")):
        disk = two.disks[path]
        assert disk.exists(".kafka_cleanshutdown")
        assert disk.read("meta.properties") == b"version=0\nbroker.id=1\ncluster.id=c\n"
        assert disk.read("replication-offset-checkpoint") == b"0\n1\n" + line + b"\n"
    two.start()
    assert two.manager.high_watermarks == {TP: 1, OTHERS[0]: 2}
    assert [log.end_offset for log in two.manager.logs.values()] == [2, 3]


def test_new_logs_go_where_the_fewest_are(two: TwoDirectories) -> None:
    """A new log is created in the directory with the fewest logs, first in order on a tie."""
    for tp in OTHERS:
        two.manager.create(tp)
    assert [two.place(tp) for tp in OTHERS] == ["a", "b", "a", "b"]
    two.manager.delete(OTHERS[0])
    two.manager.create(TP)
    assert two.place() == "a"


def test_a_preferred_directory_counts_once(two: TwoDirectories) -> None:
    """A log is created in the directory that was named for it before, but no later one is."""
    two.manager.prefer(TP, two.manager.directories[1])
    two.manager.create(TP)
    assert two.place() == "b"
    two.manager.delete(TP)
    two.manager.create(TP)
    assert two.place() == "a"


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_directory_of_another_broker_is_refused(two: TwoDirectories, which: str) -> None:
    """All directories must belong to this broker and this cluster; the error names the other."""
    two.manager.close({})
    disk = two.disks[which]
    disk.write("meta.properties", b"version=0\nbroker.id=2\ncluster.id=c\n")
    with pytest.raises(ConfigError, match=f"directory {which} belongs to broker 2, not to"):
        two.start()
    disk.write("meta.properties", b"version=0\nbroker.id=1\ncluster.id=d\n")
    with pytest.raises(ConfigError, match=f"directory {which} belongs to cluster d, not to"):
        two.start()


def test_directories_of_two_clusters_are_refused() -> None:
    """Directories of different clusters are refused, even if the broker's cluster is not known."""
    disks = {"a": MemoryDisk(), "b": MemoryDisk()}
    for disk, cluster in zip(disks.values(), ("c", "d"), strict=True):
        disk.write("meta.properties", f"version=0\nbroker.id=1\ncluster.id={cluster}\n".encode())
    manager = LogManager(disks, lambda topic: CONFIG, broker_id=1, cluster_id=None)
    with pytest.raises(ConfigError, match="directory b belongs to cluster d, not to cluster c"):
        manager.open(0)


def test_each_directory_is_locked(two: TwoDirectories) -> None:
    """A broker that shares any directory with another one does not start."""
    other = LogManager(
        {"x": MemoryDisk(), "b": two.disks["b"]},
        lambda topic: CONFIG,
        broker_id=1,
        cluster_id="c",
    )
    with pytest.raises(StorageError, match="locked"):
        other.open(0)


def test_two_logs_of_a_partition_are_refused(two: TwoDirectories) -> None:
    """It cannot be known which of two current logs counts, so the broker does not start."""
    two.manager.create(TP)
    two.manager.close({})
    two.disks["b"].make_dir("t-0")
    with pytest.raises(StorageError, match="t-0 has a log in a and in b"):
        two.start()


def test_a_move_back_cancels(two: TwoDirectories) -> None:
    """A move to the present directory deletes the future log; the current one is not changed."""
    append(two.manager.create(TP), 3)
    two.manager.logs[TP].flush()
    before = content(two.manager.logs[TP])
    two.begin("b")
    two.copy()
    two.begin("a")
    assert two.manager.futures == {}
    assert two.manager.logs[TP].future is None
    assert [name[-7:] for name in two.logs_on("b")] == ["-delete"]
    two.crash()
    assert two.logs_on("b") == []
    assert content(two.manager.logs[TP]) == before


def test_a_second_order_to_the_same_directory_changes_nothing(two: TwoDirectories) -> None:
    """A move that is under way goes on."""
    append(two.manager.create(TP), 3)
    two.begin("b")
    future = two.manager.futures[TP]
    two.begin("b")
    assert two.manager.futures[TP] is future


def test_a_deleted_log_takes_its_copy_along(two: TwoDirectories) -> None:
    """The deletion of a log deletes the future log first, so that no crash brings it back."""
    append(two.manager.create(TP), 3)
    two.begin("b")
    two.copy()
    two.manager.delete(TP)
    assert (two.manager.logs, two.manager.futures) == ({}, {})
    assert [two.logs_on(path)[0][-7:] for path in "ab"] == ["-delete", "-delete"]
    two.crash()
    assert two.manager.logs == {}


def test_a_copy_without_a_log_is_discarded(two: TwoDirectories) -> None:
    """A future log whose current log is gone is deleted at the start, unless it was complete."""
    append(two.manager.create(TP), 3)
    two.begin("b")
    two.copy()
    two.manager.close({})
    two.disks["a"].remove_dir("t-0")
    two.start()
    assert (two.manager.logs, two.manager.futures) == ({}, {})
    two.manager.tick(10, {})
    assert two.logs_on("b") == []


def test_entries_of_logs_elsewhere_are_dropped(two: TwoDirectories) -> None:
    """A log that is created later does not inherit what a checkpoint says about a moved one."""
    append(two.manager.create(TP), 3)
    two.manager.close({TP: 3})
    two.disks["b"].write("replication-offset-checkpoint", b"0\n1\nt 0 2\n")
    two.start()
    assert two.manager.high_watermarks == {TP: 3}
    assert two.disks["b"].read("replication-offset-checkpoint") == b"0\n0\n"


def test_long_names_have_no_future() -> None:
    """KAFKA-4893: the name of a future log must fit into 255 bytes."""
    assert fits_a_future_name(TopicPartition("t" * 213, 0))
    assert not fits_a_future_name(TopicPartition("t" * 214, 0))
