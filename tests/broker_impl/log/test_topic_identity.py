"""The file with the topic id of a log, and what loading does if it is missing or damaged."""

from uuid import UUID

import pytest

from broker_impl.errors import StorageError
from broker_impl.log import topic_identity
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.wire.types import NO_UUID
from tests.broker_impl.log.test_manager import A, append, opened

ID = UUID(int=7)
FILE = f"{A}/partition.metadata"


def test_the_id_survives_a_power_loss() -> None:
    """The id of a new log is durable when the log is created, and the file is Kafka's."""
    disk = MemoryDisk()
    assert opened(disk).create(A, ID).topic_id == ID
    disk.crash()
    assert disk.read(FILE) == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"
    assert opened(disk).logs[A].topic_id == ID


def test_a_log_without_an_id_is_given_one() -> None:
    """A log without the file has no id, and keeps the one that it is given."""
    disk = MemoryDisk()
    log = opened(disk).create(A)
    assert log.topic_id == NO_UUID
    assert not disk.exists(FILE)
    append(log)
    log.flush()
    disk.crash()
    log = opened(disk).logs[A]
    log.identify(ID)
    disk.crash()
    log = opened(disk).logs[A]
    assert (log.topic_id, log.end_offset) == (ID, 1)


def test_a_failed_write_of_the_id_takes_the_log_offline() -> None:
    """A log whose id could not be written has none, and takes no records."""
    disk = MemoryDisk()
    log = opened(disk).create(A)
    disk.fails = lambda operation, path: path == FILE
    with pytest.raises(StorageError):
        log.identify(ID)
    assert log.topic_id == NO_UUID
    with pytest.raises(StorageError):
        append(log)


def test_a_creation_that_lost_power_leaves_an_empty_log() -> None:
    """The id is written before the first segment: without an id, a new log has no records."""
    disk = MemoryDisk()
    manager = opened(disk)
    disk.fails = lambda operation, path: path == FILE
    with pytest.raises(StorageError):
        manager.create(A, ID)
    assert disk.list(str(A)) == []
    disk.fails = lambda operation, path: False
    disk.crash()
    log = opened(disk).logs[A]
    assert (log.topic_id, log.end_offset) == (NO_UUID, 0)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"version: 0",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAABw",
        b"version: 0\ntopic: AAAAAAAAAAAAAAAAAAAABw",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw\nmore: 1",
        b"\xff\xff",
    ],
)
def test_a_damaged_id_is_ignored_only_without_records(damaged: bytes) -> None:
    """With records, a log whose id is damaged could belong to a deleted topic: it is refused."""
    disk = MemoryDisk()
    log = opened(disk).create(A, ID)
    disk.write(FILE, damaged)
    assert topic_identity.read(disk, str(A), is_empty=True) == NO_UUID
    append(log)
    log.flush()
    disk.crash()
    with pytest.raises(StorageError, match=FILE):
        opened(disk)


def test_a_topic_id_can_be_read_although_the_line_ends() -> None:
    """Editors end the last line; Kafka reads the file line by line as well."""
    disk = MemoryDisk()
    opened(disk).create(A, ID)
    disk.write(FILE, disk.read(FILE) + b"\n")
    disk.crash()
    assert opened(disk).logs[A].topic_id == ID
