"""Snapshots of a broker's state as plain values, for an observer that must not change anything.

The observer owns a ``SnapshotReader``, which remembers what it has read of each log and continues
from there; without one, snapshots cost nothing. It reads files through a function that the observer
supplies, not through the broker's disk, where a read is an event.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Final
from uuid import UUID

import msgspec

from broker_impl.api.cluster_view import ClusterView, PartitionView
from broker_impl.coordinator.transactions.metadata import Unmarked
from broker_impl.errors import WireError
from broker_impl.log.epochs import EpochStart
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import BatchMetadata
from broker_impl.log.results import Deleted, Retained
from broker_impl.node.keyed_records import KeyedRecord, KeyedRecords
from broker_impl.node.log_settings import log_config
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.results import PartitionSnapshot
from broker_impl.wire import batch
from broker_impl.wire.batch import HEADER_BYTES, BatchHeader, Record, parse_header
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition

_LONG_MS: Final = 3_600_000
"""Records that are kept for so long are not deleted while snapshots are taken."""

Peek = Callable[[str, str, int, int], bytes]
"""Reads a file of a log: data directory, path in it, start position, number of bytes."""


class ProducerSnapshot(msgspec.Struct, frozen=True):
    """The state of one idempotent producer in a log."""

    producer_id: int
    epoch: Epoch
    batches: tuple[BatchMetadata, ...]
    transaction_start: Offset | None
    """The first offset of the open transaction."""


class LogSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One log, with the headers of all its batches."""

    number: int
    """Counts the logs of this partition since the broker started.

    A replica that was deleted and created again has a new log, with the next number. One that has
    moved to another data directory has the same log.
    """
    start: Offset
    end: Offset
    is_offline: bool
    """A disk failure has taken the log offline; its content is unknown."""
    headers: Sequence[BatchHeader]
    """Only the first ``count`` headers belong to this snapshot; these never change."""
    count: int
    epochs: tuple[EpochStart, ...]
    cuts: tuple[Offset, ...]
    """The offsets at which the log was truncated since the start, oldest first."""
    rewrites: int
    """How many times the log was compacted since the start; headers read earlier may be gone."""
    rewritten_age_ms: int
    """How old the newest record was that the last compaction has read; -1: there was none."""
    is_compacted: bool
    """Whether the topic's ``cleanup.policy`` includes compaction."""
    compaction_lag_ms: int
    """The topic's ``min.compaction.lag.ms``."""
    compacted_to: Offset
    """Below it, compaction has removed the records that others below it replace."""
    deleted: tuple[Deleted, ...]
    """The segments that retention has deleted last."""
    records: Sequence[KeyedRecord] | None
    """The records of a compacted log; None for other logs, and for a follower unless it has just
    loaded or compacted it."""
    retained: Retained | None
    """What retention has left when it ran last; None: no limit of the log is near."""
    producers: tuple[ProducerSnapshot, ...] | None
    """None if they were not requested."""


class ReplicaSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A log and its replica; ``state`` is None until the controller assigns a role."""

    tp: TopicPartition
    log: LogSnapshot
    state: PartitionSnapshot | None


class SettingsSnapshot(msgspec.Struct, frozen=True):
    """The settings of a topic that the broker hosts."""

    overrides: Mapping[str, str]
    is_applied: bool
    """Whether the logs of the topic have them, and the replicas its ``min.insync.replicas``."""
    topic_id: UUID | None
    """The id in all of these logs; None if they do not agree."""


class BrokerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All replicas of one broker, and the broker's part in the cluster."""

    broker: BrokerId
    broker_epoch: Epoch
    """The epoch of its registration; -1 before."""
    controller_epoch: Epoch
    """The highest controller epoch of the orders it has accepted."""
    term: Epoch | None
    """The controller epoch in which this broker is the controller; None if it is not."""
    shown: Mapping[TopicPartition, tuple[PartitionView, UUID | None]]
    """The partitions that this broker returns to clients (Metadata), each with its topic's id."""
    settings: Mapping[str, SettingsSnapshot]
    """The settings of hosted topics; empty if they were not requested."""
    lacks_directory: bool
    """Whether a data directory has failed: logs that are missing here may be in it."""
    unmarked: Mapping[str, Unmarked]
    """The transactions that it coordinates and that wait for markers, by transactional id."""
    replicas: tuple[ReplicaSnapshot, ...]


class SnapshotReader:
    """Takes snapshots of one incarnation of one broker.

    A replica that has not changed since the previous snapshot is the same object again, and so is
    the broker's snapshot if nothing has changed.
    """

    def __init__(self, peek: Peek) -> None:
        self._peek = peek
        self._logs: dict[TopicPartition, _Reading] = {}
        self._numbers: Counter[TopicPartition] = Counter()
        self._rewritten: set[TopicPartition] = set()
        """The compacted partitions that have no log any more."""
        self._last: BrokerSnapshot | None = None
        self._shown: tuple[int, Mapping[TopicPartition, tuple[PartitionView, UUID | None]]]
        self._shown = (0, {})

    def look(
        self,
        replicas: Replicas,
        logs: dict[TopicPartition, PartitionLog],
        view: ClusterView,
        *,
        term: Epoch | None,
        producers: bool,
        unmarked: Mapping[str, Unmarked],
        settings: TopicSettings | None,
    ) -> BrokerSnapshot:
        """Take a snapshot between two events.

        ``producers``: include the state of producers, which is current only in snapshots that
        request it. ``settings``: those of topics, which are compared with what the logs have; None:
        leave them out.
        """
        readings, partitions, peek = self._logs, replicas.partitions, self._peek
        shots = []
        for tp, log in logs.items():
            reading = readings.get(tp)
            if reading is None or reading.log is not log:
                if reading is None or reading.log.identity is not log.identity:
                    self._numbers[tp] += 1
                reading = readings[tp] = _Reading(tp, log, self._numbers[tp] - 1)
            shots.append(reading.look(partitions.get(tp), peek, producers))
        if len(readings) > len(logs):
            for tp in [tp for tp in readings if tp not in logs]:
                if readings.pop(tp).log.rewrites:
                    self._rewritten.add(tp)
        if self._shown[0] != view.updates:
            ids = view.topic_ids
            shown = {tp: (found, ids.get(tp.topic)) for tp, found in view.partitions()}
            self._shown = view.updates, shown
        last, kept = self._last, {} if settings is None else _of_topics(logs, partitions, settings)
        lacks = replicas.logs.lacks_directory
        place = (replicas.broker_epoch, replicas.controller_epoch, term, lacks)
        if (
            last is not None
            and place == (last.broker_epoch, last.controller_epoch, last.term, last.lacks_directory)
            and self._shown[1] is last.shown
            and unmarked == last.unmarked
            and kept == last.settings
            and len(shots) == len(last.replicas)
            and all(map(is_, shots, last.replicas))
        ):
            return last
        self._last = BrokerSnapshot(
            broker=replicas.broker_id,
            broker_epoch=place[0],
            controller_epoch=place[1],
            term=term,
            settings=kept,
            lacks_directory=lacks,
            shown=self._shown[1],
            unmarked=unmarked,
            replicas=tuple(shots),
        )
        return self._last

    def rewritten(self) -> set[TopicPartition]:
        """Return the partitions whose logs were compacted, also after the last snapshot."""
        held = {tp for tp, reading in self._logs.items() if reading.log.rewrites}
        return held | self._rewritten


def _of_topics(
    logs: Mapping[TopicPartition, PartitionLog],
    partitions: Mapping[TopicPartition, Partition],
    settings: TopicSettings,
) -> dict[str, SettingsSnapshot]:
    """Return the settings of the topics of these logs."""
    of_topics: dict[str, list[PartitionLog]] = {}
    for tp, log in logs.items():
        of_topics.setdefault(tp.topic, []).append(log)
    found = {}
    for topic, hosted in of_topics.items():
        merged = settings.merged(topic)
        wanted = log_config(merged)
        is_applied = all(
            log.config == wanted
            and (
                (partition := partitions.get(log.topic_partition)) is None
                or partition.isr_min == merged.min_insync_replicas
            )
            for log in hosted
        )
        ids = list(dict.fromkeys(log.topic_id for log in hosted))
        topic_id = ids[0] if len(ids) == 1 else None
        found[topic] = SettingsSnapshot(settings.overrides(topic), is_applied, topic_id)
    return found


class _Reading:
    """The headers that were read of one log so far."""

    def __init__(self, tp: TopicPartition, log: PartitionLog, number: int) -> None:
        self.log = log
        self._tp = tp
        self._number = number
        self._headers = LogHeaders(log)
        self._records = KeyedRecords()
        self._seen: tuple[object, ...] = ()
        self._rewrites = -1
        self._last: ReplicaSnapshot

    def look(self, partition: Partition | None, peek: Peek, producers: bool) -> ReplicaSnapshot:
        """The replica's current snapshot; the previous one if nothing has changed."""
        log = self.log
        is_limited = log.config.retention_bytes >= 0 or log.config.retention_ms < _LONG_MS
        retained = log.retained if is_limited else None
        seen: tuple[object, ...] = (
            log.end_offset,
            len(log.cuts),
            log.rewrites,
            log.first_dirty,
            log.deletions,
            retained,
            log.config,
            log.start_offset,
            log.offline,
            log.epochs.entries,
            producers,
            None
            if partition is None
            else (
                partition.role,
                partition.leader_epoch,
                partition.high_watermark,
                partition.zk_version,
                partition.maximal_isr,
                partition.isr,
                partition.exposed,
                partition.in_sync_at,
            ),
        )
        if seen == self._seen:
            return self._last
        self._seen = seen
        headers = self._headers.read(peek)
        self._last = ReplicaSnapshot(
            tp=self._tp,
            log=LogSnapshot(
                number=self._number,
                start=log.start_offset,
                end=log.end_offset,
                is_offline=log.offline is not None,
                headers=headers,
                count=len(headers),
                epochs=log.epochs.entries,
                cuts=tuple(log.cuts),
                rewrites=log.rewrites,
                rewritten_age_ms=log.rewritten_age_ms,
                is_compacted=log.config.is_compacted,
                compaction_lag_ms=log.config.min_compaction_lag_ms,
                compacted_to=log.first_dirty,
                deleted=tuple(log.latest_deleted),
                retained=retained,
                records=self._keyed(partition, headers, peek),
                producers=_producers(log) if producers else None,
            ),
            state=None if partition is None else partition.snapshot(),
        )
        return self._last

    def _keyed(
        self, partition: Partition | None, headers: Sequence[BatchHeader], peek: Peek
    ) -> list[KeyedRecord] | None:
        is_compacted = self.log.config.is_compacted or self.log.rewrites > 0
        if partition is None or not is_compacted:
            return None
        if self.log.rewrites == self._rewrites and partition.role is not Role.LEADER:
            return None
        self._rewrites = self.log.rewrites
        first = self.log.files[0][0]

        def records(number: int) -> list[Record]:
            if headers[number].next_offset <= first:
                return []  # retention has deleted its segment
            return self._headers.records(number, peek)

        return self._records.read(headers, records)


class LogHeaders:
    """The headers of all batches of one log, which are read once each.

    A new list begins when the log was truncated or compacted.
    """

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self._begin()

    def _begin(self) -> None:
        self._cuts = len(self.log.cuts), self.log.rewrites
        self.is_damaged = False
        """Whether there are batches behind those that could be read."""
        self._headers: list[BatchHeader] = []
        self._places: list[tuple[str, int]] = []
        self._base: Offset = -1  # of the segment that was read last
        self._at = 0  # the position in it up to which headers were read

    def read(self, peek: Peek) -> list[BatchHeader]:
        """Return the headers, without those that a disk failure has made unreadable."""
        if (len(self.log.cuts), self.log.rewrites) != self._cuts:
            self._begin()
        if self.log.offline is None:
            self._read_on(peek)
        return self._headers

    def records(self, number: int, peek: Peek) -> list[Record]:
        """Return the records of one of the batches, by its number in the list of headers."""
        path, at = self._places[number]
        data = peek(self.log.data_directory, path, at, self._headers[number].size)
        return batch.records(data)

    def _read_on(self, peek: Peek) -> None:
        place = self.log.data_directory
        for base, path, size in self.log.files:
            if base < self._base:
                continue
            if base > self._base:
                self._base, self._at = base, 0
            while self._at < size:
                try:
                    header = parse_header(peek(place, path, self._at, HEADER_BYTES))
                except WireError:
                    self.is_damaged = True
                    return
                self._headers.append(header)
                self._places.append((path, self._at))
                self._at += header.size


def _producers(log: PartitionLog) -> tuple[ProducerSnapshot, ...]:
    return tuple(
        ProducerSnapshot(producer_id, entry.epoch, entry.batches, entry.transaction_start)
        for producer_id, entry in log.producers.entries.items()
    )
