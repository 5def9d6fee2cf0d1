"""Snapshots of a simulated cluster: the state of brokers and ZooKeeper as values of the model.

Taking one changes nothing: it happens between two steps of the world, and reads the bytes of logs
directly from the disks. Parts that have not changed since the last snapshot are the same objects,
so that a snapshot costs little more than asking each replica whether it has changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from broker_impl.log.producers import BatchMetadata
from broker_impl.node import zk_paths
from broker_impl.node.broker import Broker
from broker_impl.node.snapshot import (
    BrokerSnapshot,
    LogSnapshot,
    Peek,
    ReplicaSnapshot,
    SnapshotReader,
)
from broker_impl.wire import topic_ids
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import NO_UUID, TopicPartition
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.program import Program
from broker_impl.zookeeper.tree import Database
from harness.cluster.observe.ensemble_snapshots import EnsembleSnapshots
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk
from model.snapshot import (
    NOBODY,
    Batch,
    Batches,
    BrokerState,
    ClusterState,
    Compaction,
    DeletedSegment,
    EpochStart,
    KeptSegment,
    KeptSettings,
    KeyedRecord,
    PartitionState,
    Producer,
    RememberedBatch,
    ReplicaState,
    Role,
    Shown,
    Unmarked,
    ZooKeeperState,
)

_ROLES: Final[dict[str, Role]] = {
    "leader": "leader",
    "fenced": "fenced",
    "follower": "follower",
    "stopped": "stopped",
}


Look = Callable[[bool, bool], BrokerSnapshot | None]
"""Returns a broker's own snapshot of its current life.

With or without its producers, and the settings of its topics.
"""
Rewritten = Callable[[], Iterable[TopicPartition]]
"""Returns the partitions whose logs were compacted in a life of a broker; also after its end."""


def peeking(disk: SimDisk, directories: Sequence[str]) -> Peek:
    """Return a function that reads the files of a broker's logs without an event.

    directories: the broker's data directories, as in ``log.dirs``.
    """
    places = disk_directory.prefixes(directories)

    def peek(directory: str, path: str, at: int, size: int) -> bytes:
        return bytes(disk.names.file(places[directory] + path).data[at : at + size])

    return peek


def looking_at(broker: Broker, disk: SimDisk) -> tuple[Look, Rewritten]:
    """Return functions that look at a broker without the broker's own disk access."""

    reader = SnapshotReader(peeking(disk, broker.config.log_directories()))

    def look(producers: bool, settings: bool) -> BrokerSnapshot | None:
        return broker.snapshot(reader, producers=producers, settings=settings)

    return look, reader.rewritten


class Snapshots:
    """Takes the snapshots of one cluster; it must be notified of every start of a node."""

    def __init__(self) -> None:
        self._lives: dict[int, _Life] = {}
        self._starts: dict[int, int] = {}
        self._distrusted: set[int] = set()
        self._compacted: dict[str, None] = {}
        self._rewritten: dict[int, Rewritten] = {}
        self._damages: dict[int, Callable[[], int]] = {}
        self._zookeeper: _ZooKeeper | None = None
        self._ensemble = EnsembleSnapshots()
        self.calm_since_ns: int | None = None
        """Since when no fault has been active."""

    def broker_started(
        self,
        number: int,
        look: Look,
        is_alive: Callable[[], bool],
        power_losses: Callable[[], int] = lambda: 0,
        rewritten: Rewritten = tuple,
    ) -> None:
        """Register a new life of a broker, whose snapshots are taken while ``is_alive``.

        ``power_losses`` returns how many power losses its disk has had, over all of its lives.
        ``rewritten`` is called at each snapshot until the next start, and then once more: a log may
        have been compacted between the last snapshot and the end of the life.
        """
        self._add_compacted(number)
        self._rewritten[number] = rewritten
        self._damages[number] = power_losses
        self._starts[number] = self._starts.get(number, 0) + 1
        self._lives[number] = _Life(self._starts[number], look, is_alive)

    def zookeeper_started(self, history: History) -> None:
        """Register the history of a new life of ZooKeeper, if that is one server.

        Its content also counts while ZooKeeper is down: everything that it has answered is durable,
        and no other process changes it.
        """
        self._zookeeper = _ZooKeeper(lambda: history.database)

    def server_started(self, program: Program, disk: SimDisk, is_alive: Callable[[], bool]) -> None:
        """Register a new life of a server of an ensemble.

        What the cluster has in ZooKeeper is then what the ensemble has committed, as the server
        that has applied the most of it has it. It never goes back, and stays while no server runs.
        """
        self._ensemble.started(program, disk, is_alive)
        if self._zookeeper is None:
            self._zookeeper = _ZooKeeper(self._ensemble.committed)

    def disk_changed(self, number: int) -> None:
        """Exclude a broker from snapshots, because a fault has changed bytes on its disk.

        The cluster need not become whole again either.
        """
        self._distrusted.add(number)

    def trusts(self, number: int) -> bool:
        """Whether no fault has changed bytes on the disk of this broker."""
        return number not in self._distrusted

    def life_of(self, number: int) -> int:
        """The number of starts of this broker."""
        return self._starts[number]

    def take(self, time_ns: int, *, producers: bool) -> ClusterState:
        """Take a snapshot of the cluster.

        ``producers`` includes the producer state of logs, which costs more than all the rest, and
        the settings of topics, which are also in each snapshot once no fault is active.
        """
        brokers = {}
        for number in sorted(self._lives):
            if number not in self._distrusted:
                settings = producers or self.calm_since_ns is not None
                state = self._lives[number].look(producers, settings)
                if state is not None:
                    brokers[number] = state
            self._add_compacted(number)
        ensemble = self._ensemble.take()
        zookeeper = None if self._zookeeper is None else self._zookeeper.look()
        return ClusterState(
            time_ns=time_ns,
            brokers=brokers,
            zookeeper=zookeeper,
            ensemble=ensemble,
            compacted=self._compacted,
            damages={
                number: losses() + (number in self._distrusted)
                for number, losses in self._damages.items()
            },
            calm_since_ns=None if self._distrusted else self.calm_since_ns,
        )

    def _add_compacted(self, number: int) -> None:
        rewritten = self._rewritten.get(number, tuple)()
        new = {key for key in map(str, rewritten) if key not in self._compacted}
        if new:  # an earlier snapshot keeps its own
            self._compacted = self._compacted | dict.fromkeys(sorted(new))


class _Life:
    """One life of one broker."""

    def __init__(self, number: int, look: Look, is_alive: Callable[[], bool]) -> None:
        self._number = number
        self._look = look
        self._is_alive = is_alive
        self._last: tuple[BrokerSnapshot, BrokerState] | None = None
        self._shown: tuple[object, Mapping[str, Shown]] = (None, {})
        self._replicas: dict[TopicPartition, tuple[ReplicaSnapshot, ReplicaState]] = {}
        self._batches: dict[TopicPartition, tuple[object, list[Batch]]] = {}
        self._records: dict[TopicPartition, tuple[object, list[KeyedRecord]]] = {}

    def look(self, producers: bool, settings: bool) -> BrokerState | None:
        if not self._is_alive():
            return None
        shot = self._look(producers, settings)
        if shot is None:
            return None
        if self._last is None or self._last[0] is not shot:
            state = BrokerState(
                life=self._number,
                controller_epoch=shot.controller_epoch,
                term=shot.term,
                settings={
                    topic: KeptSettings(
                        dict(each.overrides), each.is_applied, _text_of(each.topic_id)
                    )
                    for topic, each in shot.settings.items()
                },
                lacks_directory=shot.lacks_directory,
                shown=self._shown_by(shot),
                unmarked={
                    name: Unmarked(
                        each.producer_id, each.producer_epoch, tuple(map(str, each.partitions))
                    )
                    for name, each in shot.unmarked.items()
                },
                replicas={str(replica.tp): self._replica(replica) for replica in shot.replicas},
                compactions={
                    str(each.tp): Compaction(
                        each.log.rewrites,
                        each.log.is_compacted,
                        each.log.compaction_lag_ms,
                        each.log.rewritten_age_ms,
                    )
                    for each in shot.replicas
                    if each.log.rewrites or each.log.is_compacted
                },
            )
            self._last = shot, state
        return self._last[1]

    def _shown_by(self, shot: BrokerSnapshot) -> Mapping[str, Shown]:
        if self._shown[0] is not shot.shown:
            self._shown = (
                shot.shown,
                {
                    str(tp): Shown(
                        view.leader,
                        view.leader_epoch,
                        view.isr,
                        view.replicas,
                        _text_of(topic_id),
                    )
                    for tp, (view, topic_id) in shot.shown.items()
                },
            )
        return self._shown[1]

    def _replica(self, shot: ReplicaSnapshot) -> ReplicaState:
        known = self._replicas.get(shot.tp)
        if known is not None and known[0] is shot:
            return known[1]
        batches = self._batches_of(shot.tp, shot.log)
        state = _replica(shot, batches, self._records_of(shot.tp, shot.log))
        self._replicas[shot.tp] = shot, state
        return state

    def _batches_of(self, tp: TopicPartition, log: LogSnapshot) -> Batches:
        headers, batches = self._batches.get(tp, (None, []))
        if headers is not log.headers:
            batches = []
            self._batches[tp] = log.headers, batches
        batches += map(_batch, log.headers[len(batches) : log.count])
        return Batches(batches, log.count)

    def _records_of(self, tp: TopicPartition, log: LogSnapshot) -> list[KeyedRecord] | None:
        if log.records is None:
            return None
        read, records = self._records.get(tp, (None, []))
        if read is not log.records:
            records = []
            self._records[tp] = log.records, records
        records += (KeyedRecord(*each) for each in log.records[len(records) :])
        return records


def _text_of(topic_id: UUID | None) -> str:
    return "" if topic_id in (None, NO_UUID) else topic_ids.to_text(topic_id)


def _batch(header: BatchHeader) -> Batch:
    horizon_ms = header.delete_horizon_ms
    return Batch(
        header.base_offset,
        header.next_offset,
        header.partition_leader_epoch,
        header.crc,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        header.is_control,
        header.max_timestamp,
        -1 if horizon_ms is None else horizon_ms,
    )


def remembered(batches: Iterable[BatchMetadata]) -> tuple[RememberedBatch, ...]:
    """Return the batches of a producer by which a log recognizes those that are sent again."""
    return tuple(
        RememberedBatch(batch.last_sequence, batch.last_offset, batch.offset_delta + 1)
        for batch in batches
    )


def _replica(
    shot: ReplicaSnapshot, batches: Batches, records: Sequence[KeyedRecord] | None
) -> ReplicaState:
    log, state = shot.log, shot.state
    producers = None
    if log.producers is not None:
        producers = {
            found.producer_id: Producer(
                found.epoch,
                remembered(found.batches),
                found.transaction_start,
            )
            for found in log.producers
        }
    epochs = tuple(EpochStart(*entry) for entry in log.epochs)
    deleted = tuple(DeletedSegment(*each) for each in log.deleted)
    kept = None if log.retained is None else KeptSegment(*log.retained)
    if state is None:
        return ReplicaState(
            role="offline" if log.is_offline else "untold",
            log_start=log.start,
            log_end=log.end,
            batches=batches,
            epochs=epochs,
            log_number=log.number,
            cuts=log.cuts,
            deleted=deleted,
            kept=kept,
            producers=producers,
        )
    return ReplicaState(
        role="offline" if log.is_offline else _ROLES[state.role],
        leader_epoch=state.leader_epoch,
        log_start=log.start,
        high_watermark=state.high_watermark,
        log_end=log.end,
        batches=batches,
        epochs=epochs,
        log_number=log.number,
        cuts=log.cuts,
        deleted=deleted,
        kept=kept,
        records=records,
        compacted_to=log.compacted_to,
        isr=state.isr,
        maximal_isr=state.maximal_isr,
        state_version=state.zk_version,
        exposed=state.exposed,
        in_sync_at=state.in_sync_at,
        producers=producers,
    )


class _ZooKeeper:
    """What is committed: the content of one life of ZooKeeper, or that of an ensemble.

    ``committed`` returns it; ``None`` while no server knows it.
    """

    def __init__(self, committed: Callable[[], Database | None]) -> None:
        self._committed = committed
        self._database = Database()
        self._zxid = -1
        self._last = ZooKeeperState(partitions={})
        self._partitions: dict[str, tuple[tuple[int, int], PartitionState]] = {}
        self._settings: dict[str, tuple[int, Mapping[str, str]]] = {}

    def look(self) -> ZooKeeperState:
        database = self._committed()
        if database is not None and database.last_zxid > self._zxid:
            self._database = database
            self._zxid = database.last_zxid
            state = self._read()
            if state != self._last or any(
                partition is not self._last.partitions[key]
                for key, partition in state.partitions.items()
            ):
                self._last = state
        return self._last

    def _read(self) -> ZooKeeperState:
        nodes = self._database.nodes
        epoch = nodes.get(zk_paths.CONTROLLER_EPOCH)
        holder = nodes.get(zk_paths.CONTROLLER)
        controller = NOBODY
        if holder is not None:
            data = holder.data or b""
            controller = zk_paths.decode(
                zk_paths.CONTROLLER, data, zk_paths.ControllerZnode
            ).brokerid
        return ZooKeeperState(
            partitions=self._read_partitions(),
            settings=self._read_settings(),
            deleting=self._read_deletions(),
            controller=controller,
            controller_epoch=0 if epoch is None else int(epoch.data or b"0"),
        )

    def _read_deletions(self) -> dict[str, int]:
        nodes = self._database.nodes
        parent = nodes.get(zk_paths.DELETE_TOPICS)
        topics = () if parent is None else parent.children
        return {topic: nodes[zk_paths.delete_topic(topic)].czxid for topic in topics}

    def _read_settings(self) -> dict[str, Mapping[str, str]]:
        nodes, found = self._database.nodes, {}
        parent = nodes.get(zk_paths.TOPIC_CONFIGS)
        for topic in () if parent is None else parent.children:
            path = zk_paths.topic_config(topic)
            node = nodes[path]
            known = self._settings.get(topic)
            if known is None or known[0] != node.mzxid:
                znode = zk_paths.decode(path, node.data or b"", zk_paths.ConfigZnode)
                known = self._settings[topic] = node.mzxid, znode.config
            found[topic] = known[1]
        return found

    def _read_partitions(self) -> dict[str, PartitionState]:
        nodes, states = self._database.nodes, {}
        topics = nodes.get(zk_paths.TOPICS)
        going = nodes.get(zk_paths.DELETE_TOPICS)
        for topic in () if topics is None else topics.children:
            if going is not None and topic in going.children:
                continue  # it is being deleted: brokers delete it, each at its own time
            path = zk_paths.topic(topic)
            node = nodes[path]
            said: zk_paths.TopicZnode | None = None
            parent = nodes.get(zk_paths.partitions(topic))
            for name in () if parent is None else parent.children:
                tp = TopicPartition(topic, int(name))
                place = zk_paths.state(tp)
                state = nodes.get(place)
                if state is None:
                    continue
                key, made = str(tp), (node.mzxid, state.mzxid)
                known = self._partitions.get(key)
                if known is None or known[0] != made:
                    if said is None:
                        said = zk_paths.decode(path, node.data or b"", zk_paths.TopicZnode)
                    znode = zk_paths.decode(place, state.data or b"", zk_paths.StateZnode)
                    known = (
                        made,
                        PartitionState(
                            leader=znode.leader,
                            leader_epoch=znode.leader_epoch,
                            isr=tuple(znode.isr),
                            replicas=tuple(said.partitions[name]),
                            controller_epoch=znode.controller_epoch,
                            version=state.version,
                            birth=node.czxid,
                            topic_id=said.topic_id or "",
                            adding=tuple(said.adding_replicas.get(name, ())),
                            removing=tuple(said.removing_replicas.get(name, ())),
                        ),
                    )
                    self._partitions[key] = known
                states[key] = known[1]
        return states
