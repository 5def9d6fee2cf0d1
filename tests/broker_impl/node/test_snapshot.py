from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.api.cluster_view import ClusterView
from broker_impl.coordinator.transactions.metadata import Unmarked
from broker_impl.errors import StorageError
from broker_impl.log import moving
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.node import zk_paths
from broker_impl.node.log_settings import log_config
from broker_impl.node.snapshot import (
    BrokerSnapshot,
    ReplicaSnapshot,
    SettingsSnapshot,
    SnapshotReader,
)
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.replica import log_directories
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.replicas import Replicas
from broker_impl.wire import batch
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker_impl.wire.types import NO_UUID, TopicPartition

TP = TopicPartition("t", 0)


class Watched:
    """Broker 1, and a snapshot reader of it."""

    def __init__(self, disk: MemoryDisk | None = None, other: MemoryDisk | None = None) -> None:
        self.disk = disk or MemoryDisk()
        disks = {"": self.disk} | ({} if other is None else {"other": other})
        self.logs = LogManager(
            disks, lambda _: LogConfig(segment_bytes=300), broker_id=1, cluster_id="c"
        )
        self.logs.open(0)
        self.replicas = Replicas(
            1,
            self.logs,
            ReplicaConfig(),
            clock=lambda: 0.0,
            wall_ms=lambda: 1,
            on_effect=lambda effect: None,
        )
        self.view = ClusterView()
        self.unmarked: dict[str, Unmarked] = {}
        self.settings: TopicSettings | None = None
        self.reader = SnapshotReader(
            lambda name, path, at, size: disks[name].open(path).pread(at, size)
        )

    def order(self, leader: int, epoch: int) -> None:
        """Handle a LeaderAndIsr request."""
        row = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=[1, 2],
            replicas=[1, 2],
        )
        topic = LeaderAndIsrTopicState(topic_name="t", partition_states=[row])
        request = LeaderAndIsrRequest(controller_epoch=1, broker_epoch=-1, topic_states=[topic])
        assert self.replicas.leader_and_isr(request).partition_errors[0].error_code == 0

    def tell(self, leader: int, epoch: int) -> None:
        """Handle an UpdateMetadata request."""
        row = UpdateMetadataPartitionState(leader=leader, leader_epoch=epoch)
        topic = UpdateMetadataTopicState(topic_name="t", partition_states=[row])
        self.view.update(UpdateMetadataRequest(controller_epoch=1, topic_states=[topic]))

    def append(self, producer_id: int = -1, sequence: int = -1) -> None:
        data = batch.encode_batch(
            [batch.Record(value=b"v" * 20)],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
        assert self.replicas.append(TP, data, acks=1).error == 0

    def look(self, *, producers: bool = False) -> BrokerSnapshot:
        return self.reader.look(
            *(self.replicas, self.logs.logs, self.view),
            term=None,
            producers=producers,
            unmarked=self.unmarked,
            settings=self.settings,
        )

    def replica(self, *, producers: bool = False) -> ReplicaSnapshot:
        (shot,) = self.look(producers=producers).replicas
        return shot


@pytest.fixture
def broker() -> Watched:
    return Watched()


def offsets(shot: ReplicaSnapshot) -> Sequence[int]:
    return [header.base_offset for header in shot.log.headers[: shot.log.count]]


def test_a_snapshot_has_all_batches_across_segments_and_keeps_them(broker: Watched) -> None:
    """A snapshot has all batches across segments; a later one reads only what was appended since.

    An older snapshot keeps its content.
    """
    broker.order(1, 0)
    for _ in range(3):
        broker.append()
    older = broker.replica()
    for _ in range(7):
        broker.append()
    newer = broker.replica()
    assert len(broker.logs.logs[TP].files) > 2, "the log has rolled"
    assert (offsets(older), older.log.end) == ([0, 1, 2], 3)
    assert (offsets(newer), newer.log.end) == (list(range(10)), 10)
    assert newer.log.headers is older.log.headers, "nothing is read twice"
    assert newer.state is not None
    assert (newer.state.role, newer.state.leader_epoch, newer.log.epochs) == (
        "leader",
        0,
        ((0, 0),),
    )


def test_a_moved_log_is_the_same_log() -> None:
    """A log that has moved to another data directory keeps its number and its truncations."""
    broker = Watched(other=MemoryDisk())
    broker.order(1, 0)
    for _ in range(5):
        broker.append()
    broker.logs.logs[TP].truncate_to(4)
    before = broker.replica()
    broker.logs.begin_move(TP, broker.logs.directories[1])
    while moving.copy(broker.logs.logs[TP], broker.logs.futures[TP], 1000, 0):
        pass
    log_directories.replace(broker.replicas, TP)
    after = broker.replica()
    assert broker.logs.logs[TP].data_directory == "other"
    assert (after.log.number, after.log.cuts) == (before.log.number, before.log.cuts)
    assert offsets(after) == offsets(before) == [0, 1, 2, 3]
    broker.append()
    assert offsets(broker.replica()) == [0, 1, 2, 3, 4]


def test_what_has_not_changed_is_the_same_object(broker: Watched) -> None:
    """Without an event the snapshot is the same object; any event on the replica makes another."""
    broker.order(1, 0)
    first = broker.look()
    assert broker.look() is first
    broker.append()
    assert broker.look() is not first


def test_what_clients_receive_is_part_of_it(broker: Watched) -> None:
    """A snapshot has the partitions that clients see; a new epoch makes another snapshot."""
    broker.tell(1, 4)
    first = broker.look()
    view, topic_id = first.shown[TP]
    assert (view.leader_epoch, topic_id) == (4, NO_UUID)
    assert broker.look() is first
    broker.tell(2, 5)
    epochs = [shot.shown[TP][0].leader_epoch for shot in (first, broker.look())]
    assert epochs == [4, 5]


def test_a_log_that_was_deleted_and_is_back_is_another(broker: Watched) -> None:
    """A log that was deleted and created again has another number, even if no snapshot saw it."""
    broker.order(1, 0)
    broker.append()
    assert broker.replica().log.number == 0
    del broker.replicas.partitions[TP]
    broker.logs.delete(TP)
    broker.order(1, 0)
    shot = broker.replica()
    assert (shot.log.number, shot.log.end, offsets(shot)) == (1, 0, [])


def test_a_log_that_was_cut_is_read_anew(broker: Watched) -> None:
    """A truncated log is read again, even when it has grown to the same length."""
    broker.order(1, 0)
    broker.append()
    broker.append()
    before = broker.replica()
    broker.logs.logs[TP].truncate_to(1)
    broker.append()
    after = broker.replica()
    assert (offsets(before), offsets(after)) == ([0, 1], [0, 1])
    assert after.log.headers is not before.log.headers


def test_a_log_is_seen_before_its_broker_is_told_of_it(broker: Watched) -> None:
    """After a restart a snapshot shows the recovered log before the broker knows its role."""
    broker.order(1, 0)
    broker.append()
    broker.disk.kill()
    shot = Watched(broker.disk).replica()
    assert (shot.state, offsets(shot), shot.log.end) == (None, [0], 1)


def test_producers_are_told_when_asked_for(broker: Watched) -> None:
    """A snapshot has producer states only on request, because they are copied."""
    broker.order(1, 0)
    broker.append(producer_id=5, sequence=0)
    broker.append(producer_id=5, sequence=1)
    assert broker.replica().log.producers is None
    told = broker.replica(producers=True).log.producers
    assert told is not None
    assert [(p.producer_id, p.epoch, [b.last_sequence for b in p.batches]) for p in told] == [
        (5, 0, [0, 1])
    ]


def test_a_deleted_log_is_forgotten(broker: Watched) -> None:
    """A deleted log is not in the next snapshot."""
    broker.order(1, 0)
    broker.look()
    broker.logs.delete(TP)
    assert broker.look().replicas == ()


def test_a_damaged_log_is_seen_up_to_the_damage(broker: Watched) -> None:
    """A damaged log is read up to the damage, and its headers do not reach the log's end."""
    broker.order(1, 0)
    for _ in range(3):
        broker.append()
    (_, path, size) = broker.logs.logs[TP].files[0]
    first = broker.replica().log.headers[0].size
    disk = broker.disk.open(path)
    whole = disk.pread(0, size)
    torn = whole[:first] + b"\0" * 61 + whole[first + 61 :]
    shot = SnapshotReader(lambda _, path, at, size: torn[at : at + size]).look(
        *(broker.replicas, broker.logs.logs, broker.view),
        term=None,
        producers=False,
        unmarked={},
        settings=None,
    )
    (replica,) = shot.replicas
    assert offsets(replica) == [0]
    assert replica.log.end == 3


def test_transactions_that_wait_for_markers_are_shown() -> None:
    """The snapshot is another one when a transaction waits for other markers."""
    watched = Watched()
    before = watched.look()
    watched.unmarked = {"tx": Unmarked(7, 0, (TP,))}
    after = watched.look()
    assert (before.unmarked, after.unmarked) == ({}, {"tx": Unmarked(7, 0, (TP,))})
    assert watched.look() is after


def test_a_broker_that_lacks_a_directory_shows_it() -> None:
    """The snapshot shows that logs may be missing, and is another one than before (KIP-112)."""
    other = MemoryDisk()
    watched = Watched(other=other)
    watched.order(1, 0)
    before = watched.look()
    watched.disk.fails = lambda operation, path: True
    watched.logs.checkpoint({})
    after = watched.look()
    assert (before.lacks_directory, after.lacks_directory) == (False, True)
    other.fails = lambda operation, path: True
    watched.logs.give_up(watched.logs.directories[0])
    with pytest.raises(StorageError):
        watched.logs.directories[1].sync_names()
    last = watched.look()
    assert (last.replicas, last.lacks_directory) == ((), True)  # the broker is about to end


def test_compacted_logs_are_known_after_the_last_snapshot() -> None:
    """A reader knows what was compacted since it last looked, and in a directory that has failed.

    Before the broker has opened its logs, none was.
    """
    broker = Watched()
    assert broker.reader.rewritten() == set()
    broker.order(1, 0)
    broker.look()
    assert broker.reader.rewritten() == set()
    broker.logs.logs[TP].rewrites += 1
    assert broker.reader.rewritten() == {TP}
    del broker.logs.logs[TP]
    broker.look()
    assert broker.reader.rewritten() == {TP}


async def test_the_settings_of_topics_are_compared_with_those_of_their_logs() -> None:
    """A snapshot has them on request: the overrides, and whether the logs have them."""
    broker = Watched()
    broker.order(1, 0)
    assert broker.look().settings == {}
    zk: Any = SimpleNamespace(get=_stored)
    config = configuration.parse({"broker.id": "1", "zookeeper.connect": "h:1"})
    settings = broker.settings = TopicSettings(config, lambda: zk)
    assert broker.look().settings == {"t": SettingsSnapshot({}, is_applied=False, topic_id=NO_UUID)}
    broker.logs.logs[TP].config = log_config(settings.merged("t"))
    assert broker.look().settings == {"t": SettingsSnapshot({}, is_applied=True, topic_id=NO_UUID)}
    assert broker.look() is broker.look()
    await settings.keep("t")
    kept = {"segment.ms": "7"}
    assert broker.look().settings == {
        "t": SettingsSnapshot(kept, is_applied=False, topic_id=NO_UUID)
    }
    broker.logs.logs[TP].config = log_config(settings.merged("t"))
    assert broker.look().settings == {
        "t": SettingsSnapshot(kept, is_applied=True, topic_id=NO_UUID)
    }
    broker.replicas.partitions[TP].isr_min = 2
    assert not broker.look().settings["t"].is_applied


async def _stored(path: str) -> tuple[bytes, None]:
    return zk_paths.encode(zk_paths.ConfigZnode(config={"segment.ms": "7"})), None
