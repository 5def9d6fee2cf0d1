"""Reads the logs in which simulated brokers store what they coordinate."""

from typing import NamedTuple

from broker_impl.node.broker import Broker
from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.wire.types import TopicPartition
from checkers.invariants.deleted_offsets import LastRecord


class Leading(NamedTuple):
    """A leadership of a coordinator's log, with all on which the outcome of an append depends."""

    partition: Partition
    epoch: int
    zk_version: int
    isr: frozenset[int]
    maximal_isr: frozenset[int]


def led(broker: Broker, tp: TopicPartition) -> Partition | None:
    """Return the replica of a partition if this broker leads it and its disk has not failed."""
    partition = broker.replicas.partitions.get(tp)
    if partition is None or partition.role is not Role.LEADER:
        return None
    return partition if partition.log.offline is None else None


def leadership(broker: Broker, tp: TopicPartition) -> Leading | None:
    """Return the leadership of this broker of a partition, if it leads it."""
    partition = led(broker, tp)
    if partition is None:
        return None
    return Leading(
        partition,
        partition.leader_epoch,
        partition.zk_version,
        partition.isr,
        partition.maximal_isr,
    )


def last_before(partition: Partition, end: int) -> LastRecord | None:
    """Return the record at the offset before ``end``; None if the log does not know its epoch."""
    epoch = epoch_at(partition, end - 1)
    return None if epoch is None else LastRecord(end - 1, epoch)


def epoch_at(partition: Partition, offset: int) -> int | None:
    """Return the leader epoch of the record at an offset; None if the log does not have it."""
    if offset >= partition.log.end_offset:
        return None
    starts = [entry for entry in partition.log.epochs.entries if entry.start <= offset]
    return starts[-1].epoch if starts else None
