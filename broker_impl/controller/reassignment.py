"""The rules of reassigning a partition to other replicas (KIP-455): start, cancel, completion.

During the move, the partition's replicas are the target replicas and the original ones. New
replicas are added at once and follow; once all target replicas are in sync, the others are removed.
ZooKeeper records which replicas are being added and removed, so that any controller can continue or
cancel the move.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.types import BrokerId

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """The replicas that a reassignment adds to and removes from one partition."""

    adding: Replicas
    removing: Replicas


@dataclass(frozen=True, slots=True)
class Assignment:
    """A topic's replicas, as stored in ZooKeeper."""

    replicas: Mapping[int, Replicas]
    """The replicas of each partition, including those being added and removed."""
    moves: Mapping[int, Move] = field(default_factory=dict)
    topic_id: UUID | None = None
    """The topic's id; None if an earlier version of Kafka created the topic."""

    def but(self, partition: int, replicas: Replicas, move: Move | None) -> "Assignment":
        """Return this assignment with one partition replaced."""
        moves = {number: each for number, each in self.moves.items() if number != partition}
        if move is not None:
            moves[partition] = move
        return rewritten(self, {**self.replicas, partition: replicas}, moves)


def rewritten(
    found: Assignment, replicas: Mapping[int, Replicas], moves: Mapping[int, Move]
) -> Assignment:
    """The assignment to write after a change: it keeps the topic's id (KAFKA-12835)."""
    return replace(found, replicas=replicas, moves=moves)


def identified(found: Assignment, fresh: UUID) -> Assignment:
    """The assignment to write for a topic that had no id: with ``fresh``, unless it has one now."""
    return found if found.topic_id is not None else replace(found, topic_id=fresh)


def origin(replicas: Replicas, move: Move | None) -> Replicas:
    """The replicas before the move, to which a cancelled move returns."""
    adding = () if move is None else move.adding
    return tuple(broker for broker in replicas if broker not in adding)


def target(replicas: Replicas, move: Move) -> Replicas:
    """The replicas after the move."""
    return tuple(broker for broker in replicas if broker not in move.removing)


def begin(replicas: Replicas, move: Move | None, wanted: Replicas) -> tuple[Replicas, Move | None]:
    """The replicas during a move to ``wanted``, and the move; None: no replica is added or removed.

    A move in progress is replaced: the new move starts from the same original replicas.
    """
    start = origin(replicas, move)
    together = tuple(dict.fromkeys((*wanted, *start)))
    adding = tuple(broker for broker in together if broker not in start)
    removing = tuple(broker for broker in start if broker not in wanted)
    return together, Move(adding, removing) if adding or removing else None


def refuse(
    wanted: Sequence[BrokerId], new: Collection[BrokerId], live: Container[BrokerId]
) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT if the wanted replicas are not valid.

    They are not valid if there are none, if a broker is repeated, or if one of ``new`` is not live.
    """
    if not wanted:
        raise _invalid("a partition needs at least one replica")
    if len(set(wanted)) != len(wanted):
        raise _invalid("the request names a broker twice")
    missing = [broker for broker in new if broker not in live]
    if missing:
        raise _invalid(f"these brokers are not alive: {', '.join(map(str, missing))}")


def is_complete(
    wanted: Sequence[BrokerId], isr: Container[BrokerId], live: Container[BrokerId]
) -> bool:
    """Return whether the other replicas may be removed: all target replicas must be in the ISR.

    live: being live is not enough, because only ISR members hold everything that is committed.
    """
    return all(broker in isr for broker in wanted)


def to_extend(known: Assignment, found: Assignment) -> Assignment:
    """The assignment to which partitions are added: the one that is stored in ZooKeeper now.

    It is not the one that this controller knows, because another writer may have changed it.
    """
    return found


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
