"""The rules by which the controller elects leaders and shrinks ISRs.

Each rule takes the state from ZooKeeper and the live brokers, and returns a choice, or None if
nothing changes. `replicas` is the assignment in order of preference. `live` contains the registered
brokers, without those whose replica of the partition is in a failed log directory (KIP-112);
`candidates` those of them that can become leaders because they are not shutting down.
"""

from collections.abc import Collection, Container, Sequence
from typing import Final, NamedTuple

from broker_impl.wire.types import BrokerId, Epoch

NO_LEADER: Final = -1


class Choice(NamedTuple):
    """A leader, or `NO_LEADER`, and its ISR."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]


def next_epoch(leader_epoch: Epoch) -> Epoch:
    """The leader epoch of a state that a controller writes: each change begins a new one (E1)."""
    return leader_epoch + 1


def first(replicas: Sequence[BrokerId], candidates: Container[BrokerId]) -> Choice | None:
    """The first leader of a new partition; all live replicas are in sync, because all are empty."""
    alive = tuple(replica for replica in replicas if replica in candidates)
    return Choice(alive[0], alive) if alive else None


def offline(
    replicas: Sequence[BrokerId],
    isr: Sequence[BrokerId],
    candidates: Container[BrokerId],
    *,
    unclean: bool,
) -> Choice | None:
    """A new leader for a partition that lost its leader: the first replica that is in sync.

    If no in-sync replica is a candidate and `unclean` allows it, the first candidate leads, alone
    in its ISR: records that it does not hold are lost (rule R15).
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
    """The change that a partition needs when these brokers are alive.

    A live leader stays, and brokers that are not alive leave its ISR. A partition without a live
    leader has an election.
    """
    if leader in live:
        alive = tuple(replica for replica in isr if replica in live)
        return None if alive == isr else Choice(leader, alive)
    choice = offline(replicas, isr, candidates, unclean=unclean)
    if choice is not None:
        return choice
    return None if leader == NO_LEADER else leaderless(isr)


def leaderless(isr: tuple[BrokerId, ...]) -> Choice:
    """The state of a partition that no replica can lead: the ISR stays as it is (rule R14).

    Its first member to return can lead, because nothing was committed after the last member went
    down.
    """
    return Choice(NO_LEADER, isr)


def returned(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
    back: Collection[BrokerId],
) -> Choice | None:
    """The change that a partition needs because the ISR members in `back` restarted.

    They may have lost records that were not yet on disk, so they leave the ISR if other members
    stayed up. If none did, the full ISR is kept and its leader begins a new epoch: a leader that
    continued in the old epoch would assign the same offsets to different records.
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
    """Remove a broker that shuts down from the ISR, or move its leadership to another member.

    If no other replica is in sync, the broker keeps the leadership, because it still serves
    requests.
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
    """Return leadership to the first replica of the assignment, if it is live and in sync."""
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
    """The leader and ISR among these replicas, which differ from the previous assignment.

    The leader stays if it is among them. None: none of them can lead, and records that only other
    replicas hold would be lost. A partition without a leader can stay without one.
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
    """An unclean election that an operator requested for a partition without a leader."""
    return offline(replicas, isr, candidates, unclean=True)
