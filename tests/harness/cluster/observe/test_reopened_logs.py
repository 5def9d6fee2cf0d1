import logging
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker_impl import mutants
from broker_impl.errors import StorageError
from broker_impl.log.aborted_index import Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition
from checkers.invariants.after_kill import Known, KnownLog, difference, loss
from harness.cluster.observe.reopened_logs import ReopenedLogs
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk

TP = TopicPartition("a-b", 3)
CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=0, delete_delay_ms=0, retention_ms=-1)


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    mutants.removed()


class Broker:
    """The logs of a broker on a simulated disk."""

    def __init__(self, *directories: str, config: LogConfig = CONFIG) -> None:
        self.disk = SimDisk(random.Random(1), StorageError)
        disks = disk_directory.disks(self.disk.attach(), directories)
        self.manager = LogManager(disks, lambda topic: config, broker_id=3, cluster_id="c")
        self.manager.open(0)
        self.log = self.manager.create(TP)
        self.log.assign_epoch(0, 0)
        self.reopened = ReopenedLogs(lambda: self.manager.logs, directories, self.disk)
        self._sequence = 0

    def append(self, *, transactional: bool = False, producer_id: int = 7) -> None:
        """Append a batch of two records, each newer than the one before."""
        at = self.log.end_offset
        records = [Record(value=b"v" * 20, timestamp_ms=1000 + at + n) for n in range(2)]
        data = batch.encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
            transactional=transactional,
        )
        self._sequence += 2
        guard = self.log.producers.guard(producer_id) if transactional else None
        self.log.append_as_leader(data, leader_epoch=0, now_ms=5, guard=guard)

    def abort(self, producer_id: int) -> None:
        """Abort the transaction of a producer, as the coordinator in epoch 4 decided it."""
        marker = Marker(producer_id, 0, is_commit=False, coordinator_epoch=4)
        self.log.append_marker(marker, leader_epoch=0, now_ms=5)

    def known(self) -> Known:
        """Return the log as it is known, in memory and after a loss of all else."""
        found = self.reopened.known(str(TP))
        assert found is not None
        return found

    def judged(self) -> tuple[str | None, str | None]:
        """Return what differs after a kill, and what is lost with the power."""
        known = self.known()
        kill = difference(known, is_compacted=False, forgets=False)
        return kill, loss(known, is_compacted=False)


def loaded(found: KnownLog | str) -> KnownLog:
    assert isinstance(found, KnownLog), found
    return found


@pytest.mark.parametrize("directories", [("data",), ("data/one", "data/two")])
def test_a_kill_loses_nothing_and_a_power_loss_what_is_not_synced(
    directories: tuple[str, ...],
) -> None:
    """Both are seen without a change of the disk, in the directory that holds the log."""
    broker = Broker(*directories)
    for _ in range(3):
        broker.append()
    broker.log.flush()
    broker.append()
    files = {path: bytes(file.data) for path, file in broker.disk.names.files()}
    known = broker.known()
    assert loaded(known.killed)[:-1] == (*known.held[:2], 0, *known.held[3:-1])
    assert known.held.end == 8
    assert loaded(known.unpowered).end == known.held.recovery_point == 6
    assert broker.judged() == (None, None)
    assert {path: bytes(file.data) for path, file in broker.disk.names.files()} == files


def test_no_message_of_the_copy_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A broker that loads logs says so; the copy is not one."""
    broker = Broker("data")
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        broker.known()
    assert caplog.records == []
    assert logging.root.manager.disable == logging.NOTSET


def test_a_log_that_is_offline_or_elsewhere_is_not_known() -> None:
    """The content of an offline log is unknown."""
    broker = Broker("data")
    assert broker.reopened.known("other-0") is None
    broker.log.offline = StorageError("a planned failure")
    assert broker.reopened.known(str(TP)) is None


def test_a_log_that_cannot_be_loaded_is_reported() -> None:
    """What is damaged on the disk would end the broker when it starts."""
    broker = Broker("data")
    broker.append()
    broker.manager.checkpoint({TP: 0})
    broker.disk.names.file("recovery-point-offset-checkpoint").data[:] = b"x"
    why, _ = broker.judged()
    assert why is not None
    assert why.startswith("the log would not be loaded after a kill: StorageError: recovery-point")


def truncated(broker: Broker) -> None:
    """Append, abort a transaction, and truncate both away."""
    broker.append()
    broker.append(transactional=True, producer_id=9)
    broker.abort(9)
    broker.log.truncate_to(1 + 1)


@pytest.mark.parametrize(
    ("mutant", "why"),
    [
        ("times-survive-truncation", "the largest timestamp of the segment at 0"),
        ("places-survive-truncation", "the position of offset"),
        ("aborted-survive-truncation", "the aborted transactions with the marker at 4"),
    ],
)
def test_what_a_truncation_leaves_in_memory_is_found(mutant: str, why: str) -> None:
    """Each of these bugs leaves something that the log would not have after a start."""
    config = replace(CONFIG, segment_bytes=10_000)
    broker = Broker("data", config=config)
    truncated(broker)
    assert broker.judged() == (None, None)
    mutants.plant([mutant])
    broker = Broker("data", config=config)
    truncated(broker)
    found, lost = broker.judged()
    assert found is not None
    assert why in found
    assert lost is None


def test_a_snapshot_without_coordinator_epochs_is_found() -> None:
    """The marker is before the newest snapshot, and its segment is synced."""

    def with_snapshot() -> Broker:
        broker = Broker("data")
        broker.append(transactional=True, producer_id=9)
        broker.abort(9)
        for _ in range(4):
            broker.append()
        broker.log.flush()
        broker.manager.checkpoint({TP: 0})
        broker.append()
        return broker

    assert with_snapshot().judged() == (None, None)
    mutants.plant(["coordinator-epoch-not-stored"])
    found, _ = with_snapshot().judged()
    assert found is not None
    assert "the state of producer 9" in found
    assert "coordinator_epoch=-1" in found


def test_a_segment_whose_name_is_not_synced_is_lost_with_the_power() -> None:
    """A recovery point beyond it would let recovery trust what is gone (KAFKA-3968)."""

    def rolled() -> Broker:
        broker = Broker("data")
        for _ in range(6):
            broker.append()
        broker.log.flush()
        return broker

    assert rolled().judged() == (None, None)
    mutants.plant(["no-dir-fsync"])
    kill, lost = rolled().judged()
    assert kill is None
    assert lost is not None
    assert "after a loss of power" in lost
