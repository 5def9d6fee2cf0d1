"""Snapshot streams written by hand: the states of one partition, in few words."""

from collections.abc import Iterable, Mapping
from typing import Any

from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from model.snapshot import (
    Batch,
    Batches,
    BrokerState,
    ClusterState,
    EpochStart,
    PartitionState,
    Producer,
    RememberedBatch,
    ReplicaState,
    Shown,
    ZooKeeperState,
)

KEY = "t-0"
ALL = (1, 2, 3)


def log(*epochs: int, crc: int = 0) -> list[Batch]:
    """Batches of one record each, with these leader epochs; ``crc`` makes contents differ."""
    return [Batch(at, at + 1, epoch, 100 + at + crc) for at, epoch in enumerate(epochs)]


def cache(batches: Iterable[Batch]) -> tuple[EpochStart, ...]:
    """The leader epoch cache that agrees with these batches."""
    first: dict[int, int] = {}
    for batch in batches:
        first.setdefault(batch.epoch, batch.base)
    return tuple(EpochStart(*entry) for entry in first.items())


def replica(batches: list[Batch], hw: int = 0, **other: Any) -> ReplicaState:
    """A follower in epoch 0, with any other fields replaced."""
    said: dict[str, Any] = {
        "role": "follower",
        "leader_epoch": 0,
        "high_watermark": hw,
        "log_end": batches[-1].next if batches else 0,
        "batches": Batches.of(*batches),
        "epochs": cache(batches),
    }
    return ReplicaState(**said | other)


def leader(batches: list[Batch], hw: int = 0, epoch: int = 0, **other: Any) -> ReplicaState:
    """The leader of an epoch, with all replicas in sync."""
    said: dict[str, Any] = {
        "role": "leader",
        "leader_epoch": epoch,
        "isr": ALL,
        "maximal_isr": ALL,
        "state_version": 0,
    }
    return replica(batches, hw, **said | other)


def state(
    leader: int = 1, epoch: int = 0, isr: tuple[int, ...] = ALL, **other: Any
) -> PartitionState:
    """A partition's state in ZooKeeper."""
    said: dict[str, Any] = {"replicas": ALL, "controller_epoch": 1, "version": epoch, "birth": 1}
    return PartitionState(leader=leader, leader_epoch=epoch, isr=isr, **said | other)


def broker(held: ReplicaState | None, life: int = 1, **other: Any) -> BrokerState:
    """A running broker."""
    return BrokerState(life=life, replicas={} if held is None else {KEY: held}, **other)


def shown_as(state: PartitionState) -> Shown:
    """A partition as a broker returns it that has received this state."""
    return Shown(state.leader, state.leader_epoch, state.isr, state.replicas, state.topic_id)


def cluster(
    zookeeper: PartitionState | ZooKeeperState,
    brokers: Mapping[int, ReplicaState | BrokerState | None],
    **other: Any,
) -> ClusterState:
    """One snapshot of the cluster; brokers that are given as replicas return what ZooKeeper has."""
    if isinstance(zookeeper, PartitionState):
        zookeeper = ZooKeeperState(partitions={KEY: zookeeper}, controller_epoch=1)
    shown = {key: shown_as(each) for key, each in zookeeper.partitions.items()}
    running = {
        number: found if isinstance(found, BrokerState) else broker(found, shown=shown)
        for number, found in brokers.items()
    }
    return ClusterState(
        time_ns=other.pop("time_ns", 0), brokers=running, zookeeper=zookeeper, **other
    )


def violated(*stream: ClusterState, **rules: Any) -> list[str]:
    """The names of the invariants that a stream violates, in the order in which they were found."""
    watch = Watch(Rules(**rules))
    return [violation.invariant for now in stream for violation in watch.step(now)]


def remembered(epoch: int, *last_sequences_and_offsets: tuple[int, int]) -> Producer:
    """What is remembered of a producer that sent batches of one record."""
    return Producer(
        epoch,
        tuple(RememberedBatch(sequence, at, 1) for sequence, at in last_sequences_and_offsets),
    )
