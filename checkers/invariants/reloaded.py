"""``coordinated-as-stored``: what a coordinator has is what the next one would load.

Members and producers are answered once what the answer says is stored. So a coordinator whose whole
log is committed has no group, offset or transaction that its log does not give, and another broker
that loads this log goes on where this one ends (KIP-98, KIP-211, KIP-345).

Groups that have just been loaded are exactly those that the log gives, and the records from which
they were loaded are committed (KAFKA-5600). Later, what is about to change is not compared: groups
that rebalance, and groups of which something is being written. Neither are the members of groups
that have none, because the record of that may have failed, for which no client waits. A write that
has failed may be in the log, and committed later: the next coordinator has, or has removed, what
was refused then. So only what is stored last and is not later than what the coordinator has must be
the same, and it must be stored unless its removal is.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from checkers.invariants.coordinated import STABLE
from checkers.invariants.stored_members import Details

LOOKS: Final = 4
"""How many looks show that a group waits without a reason; there are two seconds between them."""


class StoredMember(NamedTuple):
    """What the record of a group has of a member."""

    instance: str | None
    details: Details


class StoredOffset(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int
    at: int
    """The offset of its record in the coordinator's log."""


class StoredGroup(NamedTuple):
    """A group with its offsets."""

    state: str
    generation: int
    protocol: tuple[str | None, str | None]
    """Its type and its name."""
    leader: str | None
    members: Mapping[str, StoredMember]
    offsets: Mapping[str, StoredOffset]
    """The committed offset of each partition."""
    pending: frozenset[int] = frozenset()
    """The producers whose transactions are open, and have offsets of the group."""


class Removals(NamedTuple):
    """What is known of the tombstones in a coordinator's log."""

    at: Mapping[str, int]
    """The offset of the last tombstone for each partition of which the group had an offset."""
    clean_to: int = 0
    """The offset up to which the log was compacted: tombstones before may be removed."""


class StoredTransaction(NamedTuple):
    """A transactional id."""

    producer: int
    producer_epoch: int
    timeout_ms: int
    state: str
    partitions: frozenset[str]
    started_ms: int
    updated_ms: int


def ended(held: StoredGroup, loaded: StoredGroup | None) -> frozenset[int]:
    """Return the producers whose transactions have ended, and for which a group still waits."""
    return held.pending - (frozenset() if loaded is None else loaded.pending)


def waits(looks: Sequence[frozenset[int]]) -> str | None:
    """Return for which ended transactions a group waits at the end of a run, or ``None``.

    ``looks`` are the results of `ended` in the course of the run. A coordinator is notified of a
    marker after it is in the log, and again if that fails, so the last few must agree.
    """
    last = looks[-LOOKS:]
    long = frozenset.intersection(*last) if len(last) == LOOKS else frozenset()
    return f"it waits for producers {sorted(long)}, whose transactions have ended" if long else None


def of_group(held: StoredGroup, loaded: StoredGroup | None, removals: Removals) -> str | None:
    """Return how the next coordinator would have another group, or ``None``."""
    offsets = {} if loaded is None else loaded.offsets
    for partition, offset in held.offsets.items():
        stored = offsets.get(partition)
        if stored is None:
            if offset.at < max(removals.at.get(partition, -1), removals.clean_to):
                continue
        elif stored.at > offset.at:
            continue
        if stored != offset:
            return f"the offset of {partition} is {offset}, and stored is {stored}"
    if held.state != STABLE:
        return None
    if loaded is None:
        return f"generation {held.generation} is not stored"
    if loaded.generation > held.generation or _instances(held) != _instances(loaded):
        return None
    for name in ("state", "generation", "protocol", "leader"):
        if getattr(held, name) != getattr(loaded, name):
            return f"the {name} is {getattr(held, name)}, and stored is {getattr(loaded, name)}"
    for member in sorted(held.members.keys() | loaded.members.keys()):
        one, other = held.members.get(member), loaded.members.get(member)
        if one != other:
            return f"member {member} is {one}, and stored is {other}"
    return None


def of_loaded_group(held: StoredGroup | None, loaded: StoredGroup | None) -> str | None:
    """Return how a group that has just been loaded differs from what its log gives, or ``None``."""
    if held == loaded:
        return None
    if held is None or loaded is None:
        return f"after loading it is {held}, and stored is {loaded}"
    name = next(name for name in held._fields if getattr(held, name) != getattr(loaded, name))
    return f"after loading the {name} is {getattr(held, name)}, not {getattr(loaded, name)}"


def of_transaction(held: StoredTransaction, loaded: StoredTransaction | None) -> str | None:
    """Return how the next coordinator would have another transaction, or ``None``.

    While a producer is being fenced, its epoch is ahead of the stored one, also if that fails. The
    clocks must be right: they decide which of the two is later.
    """
    if loaded is None:
        return f"it is {held}, and nothing is stored"
    if loaded.updated_ms > held.updated_ms:
        return None
    is_ahead = held.producer_epoch == loaded.producer_epoch + 1
    if is_ahead:
        held = held._replace(producer_epoch=loaded.producer_epoch)
    return None if held == loaded else f"it is {held}, and stored is {loaded}"


def _instances(group: StoredGroup) -> set[tuple[str, str]]:
    """Return the static members, of which each may be another one by a write that has failed."""
    return {(own.instance, member) for member, own in group.members.items() if own.instance}
