import itertools
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from broker_impl.config import BrokerConfig
from broker_impl.coordinator import records, transaction_records
from broker_impl.coordinator.groups.coordinator import Groups
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.records import Committed, GroupRecord, MemberRecord
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import StorageError
from broker_impl.log.aborted_index import Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.replica.events import Role
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reloaded_coordinators import Difference, ReloadedCoordinators
from harness.cluster.observe.snapshots import peeking
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk

OFFSETS = TopicPartition(records.TOPIC, 0)
STATES = TopicPartition(transaction_records.TOPIC, 0)
TP = TopicPartition("t", 0)
MEMBER = MemberRecord(
    member_id="m", session_timeout_ms=6000, rebalance_timeout_ms=9000, assignment=b"a"
)
GROUP = GroupRecord(
    protocol_type="consumer", generation=3, protocol="range", leader="m", members=(MEMBER,)
)
METADATA = Metadata(
    producer_id=5,
    producer_epoch=2,
    timeout_ms=900,
    state=TransactionState.ONGOING,
    partitions=(TP,),
    started_ms=7,
    updated_ms=8,
)


class Coordinator:
    """A broker that coordinates the groups and transactions of two logs on a simulated disk."""

    def __init__(self) -> None:
        disk = SimDisk(random.Random(1), StorageError)
        self.manager = LogManager(
            disk_directory.disks(disk.attach(), ["data"]),
            lambda topic: LogConfig(),
            broker_id=1,
            cluster_id=None,
        )
        self.manager.open(0)
        self.logs = {tp: self.manager.create(tp) for tp in (OFFSETS, STATES)}
        self.partitions: dict[TopicPartition, Any] = {
            tp: SimpleNamespace(role=Role.LEADER, log=log, high_watermark=0)
            for tp, log in self.logs.items()
        }
        self.groups = Groups(GroupConfig(), 1)
        self.transactions: dict[str, Metadata] = {}
        self.is_loading = False
        broker: Any = SimpleNamespace(
            config=replace(BrokerConfig(), offsets_topic_num_partitions=1),
            replicas=SimpleNamespace(partitions=self.partitions),
            groups=SimpleNamespace(
                is_loading=False, all=lambda: self.groups.all(), partition_of=lambda name: OFFSETS
            ),
            transactions=SimpleNamespace(
                is_loading=False,
                all=lambda: iter(self.transactions.items()),
                partition_of=lambda name: STATES,
            ),
        )
        peek = peeking(disk, ["data"])
        self.reloaded = {
            steady: ReloadedCoordinators(broker, peek, is_steady=steady) for steady in (True, False)
        }
        self._sequence = itertools.count()

    def append(
        self, tp: TopicPartition, key: bytes, value: bytes | None, producer_id: int = -1
    ) -> None:
        """Append a record to a coordinator's log, and commit it."""
        data = batch.encode_batch(
            [Record(key, value, 5)],
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=-1,
            transactional=producer_id >= 0,
        )
        log = self.logs[tp]
        guard = log.producers.guard(producer_id) if producer_id >= 0 else None
        log.append_as_leader(data, leader_epoch=0, now_ms=5, by_coordinator=True, guard=guard)
        self.partitions[tp].high_watermark = log.end_offset

    def commit(self, offset: int, producer_id: int = -1) -> None:
        """Store a committed offset of the group g."""
        key = records.encode_offset_key("g", TP)
        self.append(OFFSETS, key, records.encode_offset(Committed(offset, 1, "m", 9)), producer_id)

    def end(self, producer_id: int) -> None:
        """Commit a transaction of the producer."""
        marker = Marker(producer_id, 0, is_commit=True, coordinator_epoch=0)
        log = self.logs[OFFSETS]
        log.append_marker(marker, leader_epoch=0, now_ms=5)
        self.partitions[OFFSETS].high_watermark = log.end_offset

    def load(self) -> None:
        """Load the groups, as a new coordinator."""
        self.groups = Groups(GroupConfig(), 1)
        loading = self.groups.begin_loading(0)
        for at, header, rows in self._batches():
            assert header.base_offset == at
            loading.rows((row.offset, row.key, row.value) for row in rows)
        self.groups.loaded(0, 0.0, 0)

    def _batches(self) -> Any:
        log = self.logs[OFFSETS]
        for data in log.read(0, bytes_max=1 << 20, limit=log.end_offset):
            for at, header in batch.batches(data):
                yield header.base_offset, header, batch.records(data[at : at + header.size])

    def found_at_load(self) -> str | None:
        """Return what another coordinator would load, if the groups have just been loaded."""
        difference = self.reloaded[True].of_loaded_groups(OFFSETS)
        return None if difference is None else f"{difference.about}: {difference.why}"

    def found(self, *, is_steady: bool = True) -> list[Difference]:
        """Return what the next coordinator would have otherwise."""
        return list(self.reloaded[is_steady].differences())


@pytest.fixture
def coordinator() -> Coordinator:
    made = Coordinator()
    made.append(OFFSETS, records.encode_group_key("g"), records.encode_group(GROUP))
    made.commit(4)
    made.load()
    made.append(
        STATES, transaction_records.encode_key("x"), transaction_records.encode_value(METADATA)
    )
    made.transactions["x"] = METADATA
    return made


def test_what_was_loaded_is_as_stored(coordinator: Coordinator) -> None:
    """The coordinator goes on where its log ends."""
    assert coordinator.found() == []
    coordinator.transactions["blank"] = Metadata(timeout_ms=1)
    assert coordinator.found() == []


def test_an_offset_that_is_stored_otherwise_is_found(coordinator: Coordinator) -> None:
    """Its record is the last one that the coordinator knows."""
    group = coordinator.groups.find("g")
    assert group is not None
    group.offsets.place(1, {TP: Committed(4, 2, "m", 9)})
    group.offsets.place(2, {TP: Committed(4, 2, "m", 9)})
    (found,) = coordinator.found()
    assert (found.key, found.about) == (str(OFFSETS), "group g")
    assert found.why.startswith("the offset of t-0 is StoredOffset(offset=4, leader_epoch=2")


def test_a_write_that_has_failed_is_not_a_difference(coordinator: Coordinator) -> None:
    """It is in the log, and the coordinator has answered that it failed."""
    coordinator.commit(9)
    later = msgspec.structs.replace(METADATA, state=TransactionState.PREPARE_COMMIT, updated_ms=9)
    key, value = transaction_records.encode_key("x"), transaction_records.encode_value(later)
    coordinator.append(STATES, key, value)
    assert coordinator.found() == []


def test_a_deletion_that_has_failed_is_not_a_difference(coordinator: Coordinator) -> None:
    """Its tombstone is in the log, of an offset as well as of a transactional id."""
    coordinator.append(OFFSETS, records.encode_offset_key("g", TP), None)
    coordinator.append(STATES, transaction_records.encode_key("x"), None)
    assert coordinator.found() == []


def test_a_group_of_which_something_is_written_is_not_compared(coordinator: Coordinator) -> None:
    """Nor is a log whose end is not committed, or that the broker does not lead."""
    group = coordinator.groups.find("g")
    assert group is not None
    group.generation = 4
    assert [each.about for each in coordinator.found()] == ["group g"]
    group.writes[1] = lambda *_: None
    assert coordinator.found() == []
    group.writes.clear()
    coordinator.partitions[OFFSETS].high_watermark -= 1
    assert coordinator.found() == []
    coordinator.partitions[OFFSETS].high_watermark += 1
    coordinator.partitions[OFFSETS].role = Role.FOLLOWER
    assert coordinator.found() == []


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({}, False),
        ({"timeout_ms": 901}, True),
        ({"partitions": ()}, True),
        ({"producer_epoch": 3}, False),
        ({"last_producer_id": 3}, False),
    ],
)
def test_a_transaction_that_is_stored_otherwise_is_found(
    coordinator: Coordinator, fields: dict[str, Any], is_found: bool
) -> None:
    """The clocks must be right: they decide whether what is stored is later."""
    coordinator.transactions["x"] = msgspec.structs.replace(METADATA, **fields)
    assert [each.about for each in coordinator.found()] == ["transactional id x"] * is_found
    assert coordinator.found(is_steady=False) == []


def test_an_offset_in_a_transaction_counts_from_its_marker(coordinator: Coordinator) -> None:
    """The next coordinator reads markers as well."""
    coordinator.commit(11, producer_id=7)
    coordinator.end(7)
    assert coordinator.found() == [], "it is later than what the coordinator has"
    group = coordinator.groups.find("g")
    assert group is not None
    group.offsets.place(2, {TP: Committed(11, 1, "m", 9)})
    assert coordinator.found() == []
    group.offsets.place(3, {TP: Committed(12, 1, "m", 9)})
    assert [each.about for each in coordinator.found()] == ["group g"]


def test_groups_that_have_just_been_loaded_are_those_of_the_log(coordinator: Coordinator) -> None:
    """Each group and offset, and whose transactions have offsets, no more and no less."""
    assert coordinator.found_at_load() is None
    group = coordinator.groups.find("g")
    assert group is not None
    group.offsets.hold(7, 2, {TP: Committed(6, 1, "m", 9)})
    assert "the pending is" in (coordinator.found_at_load() or "")
    group.offsets.resolve(7, 3, is_commit=True)
    assert "the offsets is" in (coordinator.found_at_load() or "")
    coordinator.groups = Groups(GroupConfig(), 1)
    assert "after loading it is None" in (coordinator.found_at_load() or "")


def test_groups_are_loaded_once_their_records_are_committed(coordinator: Coordinator) -> None:
    """A marker beyond does not count yet, and the last one may count soon."""
    coordinator.commit(6, producer_id=7)
    coordinator.end(7)
    group = coordinator.groups.find("g")
    assert group is not None
    assert "the offsets is" in (coordinator.found_at_load() or "")
    group.offsets.hold(7, 2, {TP: Committed(6, 1, "m", 9)})
    assert coordinator.found_at_load() is None
    partition = coordinator.partitions[OFFSETS]
    partition.high_watermark -= 1
    assert coordinator.found_at_load() is None
    partition.high_watermark -= 1
    assert "are committed" in (coordinator.found_at_load() or "")
    partition.role = Role.FOLLOWER
    assert coordinator.found_at_load() is None
