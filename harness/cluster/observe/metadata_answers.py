"""Combines what several brokers say about one cluster, since any of their answers may be stale.

A broker that cannot reach the controller continues to answer with the metadata that it last
received. The rules here are pure functions of all answers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
)
from model.capabilities.control_plane import Partition
from model.roles import NodeId

_NONE = -1
"""The id that stands for no broker in Kafka's responses."""

Moves = Mapping[str, tuple[Sequence[int], Sequence[int]]]
"""The replicas that are being added and removed, by ``topic-partition``."""


def elected(named: Mapping[int, int]) -> int | None:
    """The controller of a cluster with ZooKeeper, by the broker that each broker names.

    The keys are the ids of the answering brokers, or distinct negative values where they are
    unknown. The id that most of them name is elected. Of ids that equally many name, it is the one
    that names itself; if that does not decide either, the result is ``None``.
    """
    votes = Counter(controller for controller in named.values() if controller != _NONE)
    ranked = sorted(
        (
            (count, named.get(controller) == controller, controller)
            for controller, count in votes.items()
        ),
        reverse=True,
    )
    if not ranked or (len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]):
        return None
    return ranked[0][2]


def quorum_leader(answers: Iterable[Any]) -> int | None:
    """The leader of KRaft's quorum by the DescribeQuorum response with the highest epoch.

    Returns ``None`` if no response names a leader.
    """
    row = _newest_quorum(answers)
    return None if row is None or row.leader_id == _NONE else int(row.leader_id)


def voters(answers: Iterable[Any]) -> tuple[int, ...]:
    """The voters of KRaft's quorum by the response with the highest epoch, in ascending order."""
    row = _newest_quorum(answers)
    return () if row is None else tuple(sorted(one.replica_id for one in row.current_voters))


def _newest_quorum(answers: Iterable[Any]) -> Any | None:
    rows = [
        row
        for answer in answers
        if not answer.error_code
        for topic in answer.topics
        for row in topic.partitions
        if not row.error_code
    ]
    return max(rows, key=lambda row: (row.leader_epoch, row.leader_id), default=None)


def live(answers: Iterable[MetadataResponse]) -> tuple[int, ...]:
    """The brokers that every answer lists, in ascending order."""
    listed = [{broker.node_id for broker in answer.brokers} for answer in answers]
    return tuple(sorted(set.intersection(*listed))) if listed else ()


def partitions(
    answers: Iterable[MetadataResponse], node: Callable[[int], NodeId], moves: Moves
) -> tuple[Partition, ...]:
    """Every partition that any answer lists, as :func:`combined`, in the order of the answers."""
    rows: dict[str, list[MetadataResponsePartition]] = {}
    for answer in answers:
        for topic in answer.topics:
            for row in topic.partitions:
                rows.setdefault(f"{topic.name}-{row.partition_index}", []).append(row)
    return tuple(
        _partition(key, combined(found), node, moves.get(key, ((), ())))
        for key, found in rows.items()
    )


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """One partition according to all brokers that answered."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def combined(rows: Sequence[MetadataResponsePartition]) -> PartitionAnswer:
    """Combine at least one answer about a partition.

    1. Only the answers with the highest leader epoch count (KIP-320). Releases before Kafka 2.1
       report none, and all of their answers count.
    2. The leader is the one that most of these name, and none if equally many name another.
    3. A replica is in sync if all of these say so, and assigned if one of them does: a leader
       changes its ISR without a new epoch. A partition is therefore whole only if all agree.
    """
    epoch = max(row.leader_epoch for row in rows)
    current = [row for row in rows if row.leader_epoch == epoch]
    in_sync = set.intersection(*({*row.isr_nodes} for row in current))
    replicas = dict.fromkeys(broker for row in current for broker in row.replica_nodes)
    return PartitionAnswer(
        leader=_most_named([row.leader_id for row in current]),
        leader_epoch=epoch,
        replicas=tuple(replicas),
        isr=tuple(broker for broker in current[0].isr_nodes if broker in in_sync),
    )


def _most_named(ids: Sequence[int]) -> int:
    ranked = Counter(ids).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        return _NONE
    return ranked[0][0]


def _partition(
    key: str,
    answer: PartitionAnswer,
    node: Callable[[int], NodeId],
    move: tuple[Sequence[int], Sequence[int]],
) -> Partition:
    adding, removing = move
    return Partition(
        key=key,
        replicas=tuple(map(node, answer.replicas)),
        leader=None if answer.leader == _NONE else node(answer.leader),
        leader_epoch=answer.leader_epoch,
        isr=tuple(map(node, answer.isr)),
        adding=tuple(map(node, adding)),
        removing=tuple(map(node, removing)),
    )
