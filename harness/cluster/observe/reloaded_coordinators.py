"""Loads what a simulated broker coordinates from its logs again, as the next coordinator would.

The broker is not changed: the logs are read without an event, and loaded into objects of their
own by the coordinators' code.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from broker_impl.coordinator import records, transaction_records
from broker_impl.coordinator.groups.coordinator import Groups
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.records import OffsetKey
from broker_impl.coordinator.transactions import coordinator as transactions
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, Metadata
from broker_impl.errors import WireError
from broker_impl.node.broker import Broker
from broker_impl.node.coordinators.group_coordinator import add_batch, group_config
from broker_impl.node.snapshot import LogHeaders, Peek
from broker_impl.replica.partition import Partition
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition
from checkers.invariants import reloaded
from checkers.invariants.reloaded import (
    Removals,
    StoredGroup,
    StoredMember,
    StoredOffset,
    StoredTransaction,
)
from harness.cluster.observe.coordinator_logs import led
from harness.cluster.observe.witnessed_members import details_of

Batches = list[tuple[BatchHeader, list[Record]]]


class Difference(NamedTuple):
    """Something that the next coordinator would have otherwise."""

    key: str
    """The partition of the coordinator's log."""
    about: str
    why: str


class ReloadedCoordinators:
    """The coordinators of one life of a broker.

    Args:
        broker: the broker.
        peek: reads its files.
        is_steady: whether the wall clocks of all brokers are right, by which it is known whether a
            stored transaction is later than the one that a coordinator has.
    """

    def __init__(self, broker: Broker, peek: Peek, *, is_steady: bool) -> None:
        self._broker = broker
        self._peek = peek
        self._is_steady = is_steady
        self._ended: dict[str, list[frozenset[int]]] = {}
        """By group, the producers of ended transactions for which it has waited in each look."""

    def differences(self, *, is_last: bool = False) -> Iterator[Difference]:
        """Yield what the next coordinators would have otherwise; ``is_last``: the run is over."""
        for tp in list(self._broker.replicas.partitions):
            partition = led(self._broker, tp)
            if partition is None or partition.high_watermark < partition.log.end_offset:
                continue  # what is not committed is not certain
            if tp.topic == records.TOPIC and not self._broker.groups.is_loading:
                yield from self._groups(tp, partition, is_last=is_last)
            elif (
                tp.topic == transaction_records.TOPIC
                and self._is_steady
                and not self._broker.transactions.is_loading
            ):
                yield from self._transactions(tp, partition)

    def of_loaded_groups(self, tp: TopicPartition) -> Difference | None:
        """Return what another coordinator would load, if this one has just loaded a partition.

        The markers of transactions that end meanwhile are last in the log. Each is applied once the
        coordinator is notified that it is committed, which happens again if that fails.
        """
        partition = led(self._broker, tp)
        if partition is None:
            return None
        committed = partition.high_watermark
        batches = [
            (header, rows)
            for header, rows in self._read(partition)
            if header.base_offset < committed or not header.is_control
        ]
        if batches and batches[-1][0].next_offset > max(committed, partition.log.start_offset):
            why = f"it is loaded, and only records before {committed} are committed"
            return Difference(str(tp), "all groups", why)
        runtime = self._broker.groups
        held = {each.name: each for each in runtime.all() if runtime.partition_of(each.name) == tp}
        waiting = {number for each in held.values() for number in each.offsets.pending_producers}
        last = max((n for n, (each, _) in enumerate(batches) if not each.is_control), default=-1)
        loaded = self._loaded_groups(
            tp,
            [
                batch
                for number, batch in enumerate(batches)
                if number <= last or batch[0].producer_id not in waiting
            ],
        )
        stored = {each.name: each for each in loaded.all()}
        for name in sorted(held.keys() | stored.keys()):
            one, other = held.get(name), stored.get(name)
            why_not = reloaded.of_loaded_group(
                None if one is None else _group(one), None if other is None else _group(other)
            )
            if why_not is not None:
                return Difference(str(tp), f"group {name}", why_not)
        return None

    def _loaded_groups(self, tp: TopicPartition, batches: Batches) -> Groups:
        config = self._broker.config
        loaded = Groups(group_config(config), config.offsets_topic_num_partitions)
        loading = loaded.begin_loading(tp.partition)
        for header, rows in batches:
            add_batch(loading, header, rows)
        loaded.loaded(tp.partition, 0.0, 0)
        return loaded

    def _groups(
        self, tp: TopicPartition, partition: Partition, *, is_last: bool
    ) -> Iterator[Difference]:
        runtime, batches = self._broker.groups, self._read(partition)
        loaded = self._loaded_groups(tp, batches)
        tombstones = _tombstones(batches)
        for group in runtime.all():
            if runtime.partition_of(group.name) == tp and not group.writes:
                found = loaded.find(group.name)
                stored = None if found is None else _group(found)
                removals = Removals(tombstones.get(group.name, {}), partition.log.first_dirty)
                looks = self._ended.setdefault(group.name, [])
                looks.append(reloaded.ended(_group(group), stored))
                why = reloaded.of_group(_group(group), stored, removals)
                if why is None and is_last:
                    why = reloaded.waits(looks)
                if why is not None:
                    yield Difference(str(tp), f"group {group.name}", why)

    def _transactions(self, tp: TopicPartition, partition: Partition) -> Iterator[Difference]:
        runtime = self._broker.transactions
        pairs = [
            (row.key, row.value)
            for header, rows in self._read(partition)
            for row in rows
            if row.key is not None and not header.is_control
        ]
        loaded: Mapping[str, Metadata] = transactions.fold(pairs)
        removed = {transaction_records.decode_key(key) for key, value in pairs if value is None}
        for name, metadata in runtime.all():
            if runtime.partition_of(name) != tp or metadata.producer_epoch == NO_EPOCH:
                continue
            found = loaded.get(name)
            if found is None and (name in removed or partition.log.first_dirty):
                continue  # an expiry that has failed may be stored
            why = reloaded.of_transaction(
                _transaction(metadata), None if found is None else _transaction(found)
            )
            if why is not None:
                yield Difference(str(tp), f"transactional id {name}", why)

    def _read(self, partition: Partition) -> Batches:
        """Read the log; an unreadable batch has no records, as for a coordinator that fails."""
        headers = LogHeaders(partition.log)
        found: Batches = []
        for number, header in enumerate(headers.read(self._peek)):
            try:
                found.append((header, headers.records(number, self._peek)))
            except WireError:
                continue
        return found


def _tombstones(batches: Batches) -> dict[str, dict[str, int]]:
    """Return where the last tombstones of offsets are, by group and partition."""
    found: dict[str, dict[str, int]] = {}
    for header, rows in batches:
        for row in rows if not header.is_control else ():
            if row.value is None:
                try:
                    key = records.decode_key(row.key or b"")
                except WireError:
                    continue
                if isinstance(key, OffsetKey):
                    found.setdefault(key.group, {})[str(key.tp)] = row.offset
    return found


def _group(group: Group) -> StoredGroup:
    return StoredGroup(
        group.state.value,
        group.generation,
        (group.protocol_type, group.protocol),
        group.leader,
        {
            member.id: StoredMember(member.instance_id, details_of(member, group.protocol))
            for member in group.members.values()
        },
        {str(tp): _offset(group, tp) for tp in group.offsets},
        group.offsets.pending_producers,
    )


def _offset(group: Group, tp: TopicPartition) -> StoredOffset:
    placed = group.offsets.placed(tp)
    assert placed is not None, "a group has each of its offsets"
    found = placed.committed
    return StoredOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.committed_ms,
        found.expires_ms,
        placed.at,
    )


def _transaction(metadata: Metadata) -> StoredTransaction:
    return StoredTransaction(
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state.name,
        frozenset(map(str, metadata.partitions)),
        metadata.started_ms,
        metadata.updated_ms,
    )
