"""Moving a partition to other replicas (KIP-455): what it is on the way, and when it is there.

While it moves, its replicas are the target and those that it comes from. The new ones are added at
once, and follow; once all of the target are in sync, the others go. What is written down says which
are being added and which removed, so that any controller can go on, or turn back.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.types import BrokerId

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """What is being changed about one partition's replicas."""

    adding: Replicas
    removing: Replicas


@dataclass(frozen=True, slots=True)
class Assignment:
    """A topic's replicas, as they stand in ZooKeeper."""

    replicas: Mapping[int, Replicas]
    """Of each partition; those being added and removed are among them."""
    moves: Mapping[int, Move] = field(default_factory=dict)

    def but(self, partition: int, replicas: Replicas, move: Move | None) -> "Assignment":
        """The same, but for one partition."""
        moves = {number: each for number, each in self.moves.items() if number != partition}
        if move is not None:
            moves[partition] = move
        return Assignment({**self.replicas, partition: replicas}, moves)


def origin(replicas: Replicas, move: Move | None) -> Replicas:
    """Where a partition that moves comes from: what a cancelled move leaves it."""
    adding = () if move is None else move.adding
    return tuple(broker for broker in replicas if broker not in adding)


def target(replicas: Replicas, move: Move) -> Replicas:
    """Where it goes."""
    return tuple(broker for broker in replicas if broker not in move.removing)


def begin(replicas: Replicas, move: Move | None, wanted: Replicas) -> tuple[Replicas, Move | None]:
    """The replicas on the way to ``wanted``, and the move; None: there is nothing to add or remove.

    A move under way is replaced: the new one begins where that had begun.
    """
    start = origin(replicas, move)
    together = tuple(dict.fromkeys((*wanted, *start)))
    adding = tuple(broker for broker in together if broker not in start)
    removing = tuple(broker for broker in start if broker not in wanted)
    return together, Move(adding, removing) if adding or removing else None


def refuse(
    wanted: Sequence[BrokerId], new: Collection[BrokerId], live: Container[BrokerId]
) -> None:
    """ApiError INVALID_REPLICA_ASSIGNMENT: nobody, somebody twice, or ``new`` ones that are not
    alive."""
    if not wanted:
        raise _invalid("a partition has at least one replica")
    if len(set(wanted)) != len(wanted):
        raise _invalid("a broker occurs twice")
    missing = [broker for broker in new if broker not in live]
    if missing:
        raise _invalid(f"not alive: {', '.join(map(str, missing))}")


def is_complete(
    wanted: Sequence[BrokerId], isr: Container[BrokerId], live: Container[BrokerId]
) -> bool:
    """May the others go? Once all of the target hold what is committed: are in the ISR.

    live: being there is not enough.
    """
    return all(broker in isr for broker in wanted)


def to_extend(known: Assignment, found: Assignment) -> Assignment:
    """What partitions are added to: the assignment as it stands in ZooKeeper now.

    Not as this controller knows it: somebody may have written in between.
    """
    return found


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
