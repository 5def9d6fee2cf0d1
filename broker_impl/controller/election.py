"""Who leads, and who is in sync: the rules by which a controller chooses.

Each takes what stands in ZooKeeper and who is alive, and gives a choice, or None where nothing is
to be changed. `replicas` is the assignment in order of preference. `live` are the registered
brokers; `candidates` those of them that may come to lead, that is, are not about to leave.
"""

from collections.abc import Collection, Container, Sequence
from typing import Final, NamedTuple

from broker_impl.wire.types import BrokerId

NO_LEADER: Final = -1


class Choice(NamedTuple):
    """A leader, or `NO_LEADER`, and the ISR that goes with it."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]


def first(replicas: Sequence[BrokerId], candidates: Container[BrokerId]) -> Choice | None:
    """The first leader of a new partition: all that are alive begin in sync, for all are empty."""
    alive = tuple(replica for replica in replicas if replica in candidates)
    return Choice(alive[0], alive) if alive else None


def offline(
    replicas: Sequence[BrokerId],
    isr: Sequence[BrokerId],
    candidates: Container[BrokerId],
    *,
    unclean: bool,
) -> Choice | None:
    """A new leader for a partition that has lost its own: the first replica that is in sync.

    If none of those is alive and `unclean` allows it, the first that is alive at all, alone in its
    ISR: records that it does not hold are lost (rule R15).
    """
    in_sync = tuple(replica for replica in isr if replica in candidates)
    for replica in replicas:
        if replica in in_sync:
            return Choice(replica, in_sync)
    if unclean:
        for replica in replicas:
            if replica in candidates:
                return Choice(replica, (replica,))
    return None


def reconsider(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    live: Container[BrokerId],
    candidates: Container[BrokerId],
    *,
    unclean: bool,
) -> Choice | None:
    """What must change now that these brokers are alive.

    A leader that is alive stays, and the dead leave its ISR. Without one there is an election.
    If nobody can be elected the ISR stays as it is: whoever of it comes back first can lead, since
    nothing was committed after the last of them went.
    """
    if leader in live:
        alive = tuple(replica for replica in isr if replica in live)
        return None if alive == isr else Choice(leader, alive)
    choice = offline(replicas, isr, candidates, unclean=unclean)
    if choice is not None:
        return choice
    return None if leader == NO_LEADER else Choice(NO_LEADER, isr)


def returned(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
    back: Collection[BrokerId],
) -> Choice | None:
    """What must change since these of the ISR have been away, though they are alive again.

    They may have lost what they had not yet written to disk, so that they lose their places to
    those who stayed. If nobody stayed they are all there is, and whoever leads begins a new epoch:
    a leader that went on in the old one would give its offsets to other records.
    """
    if not back:
        return None
    stayed = tuple(replica for replica in isr if replica not in back)
    if leader in stayed:
        return Choice(leader, stayed)
    return offline(replicas, stayed, candidates, unclean=False) or offline(
        replicas, isr, candidates, unclean=False
    )


def controlled_shutdown(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
    leaving: BrokerId,
) -> Choice | None:
    """Let a broker go: its ISRs without it, its leaderships to the first in sync.

    Where nobody else is in sync it keeps them, for it still serves.
    """
    if leader == leaving:
        rest = tuple(replica for replica in isr if replica in candidates)
        return offline(replicas, rest, candidates, unclean=False)
    if leaving in isr and leader in isr:
        return Choice(leader, tuple(replica for replica in isr if replica != leaving))
    return None


def preferred(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """Back to the first replica of the assignment, if it is alive and in sync."""
    wish = replicas[0]
    if leader == wish or wish not in candidates or wish not in isr:
        return None
    return Choice(wish, tuple(replica for replica in isr if replica in candidates))


def among(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """Whoever leads and is in sync of these replicas, which are others than before.

    The leader stays, if it is one of them. None: nobody of them can lead; what the others hold
    would be lost. Where nobody leads now, nobody need.
    """
    in_sync = tuple(replica for replica in isr if replica in replicas)
    if leader in in_sync or (leader == NO_LEADER and in_sync):
        return Choice(leader, in_sync)
    return offline(replicas, in_sync, candidates, unclean=False)


def unclean(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """A leader at any price, as an operator has asked for, where there is none."""
    return offline(replicas, isr, candidates, unclean=True)
