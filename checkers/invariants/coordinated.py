"""What coordinators answer to members and producers, compared with the group or transaction.

The rules that a coordinator applies are applied here again, to its state at the moment at which a
request arrives (what is refused later, depends on later events, and is not compared):

- ``member-refused``: a heartbeat, commit or sync is refused exactly if its member is not one of the
  group, was replaced by another one with its instance id (KIP-345; only the error for that keeps it
  from joining again), or names another generation than the current one (KAFKA-2596); a heartbeat
  during a rebalance is answered with it, and nothing is committed while a rebalance completes. A
  commit in a transaction is refused if what it names is wrong (KIP-447); it may name nothing.
- ``joined-as-member``: what an accepted JoinGroup states of its generation is so, and the
  generation is no larger than ``group.max.size`` (KIP-389). Each member of the former generation
  that the answer lists has joined again since. A member that joins again with
  another subscription, and a leader that does so in Stable, are answered in a later generation:
  only then does the leader assign partitions again.
- ``assigned-as-given``: a member receives the assignment that its leader has sent for it.
- ``left-as-acknowledged``: a member is not in the group once its LeaveGroup is accepted, or that of
  a tool which removes several members at once, and was not replaced by another member (KIP-345).
- ``group-deleted-unused``: a group with members is not deleted.
- ``producer-refused``: a request within a transaction is accepted only from the current producer id
  and epoch of the transactional id, and an end only if the transaction can end so (KIP-98).
- ``epoch-issued-once``: no producer epoch is issued to two producers (KIP-98).
- ``added-partition-kept``: an open transaction has each partition whose addition was acknowledged.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

NONE: Final = 0
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, FENCED_INSTANCE = 22, 25, 27, 82
"""Error codes of the protocol."""
_OF_MEMBERS: Final = frozenset({ILLEGAL_GENERATION, UNKNOWN_MEMBER, FENCED_INSTANCE})
PREPARING, COMPLETING, STABLE, EMPTY, DEAD = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Empty",
    "Dead",
)
"""The states of a group, as DescribeGroups names them."""


class Group(NamedTuple):
    """A group, as its coordinator has it."""

    state: str
    generation: int
    members: Mapping[str, str | None]
    """The instance id of each member; None for dynamic members."""

    def holder(self, instance: str) -> str | None:
        """Return the member with this instance id."""
        return next((member for member, own in self.members.items() if own == instance), None)


class Said(NamedTuple):
    """What a request says of its sender."""

    member: str
    generation: int
    instance: str | None = None


def _of_member(group: Group, said: Said) -> int:
    if said.instance is not None:
        holder = group.holder(said.instance)
        if holder is None:
            return UNKNOWN_MEMBER
        if holder != said.member:
            return FENCED_INSTANCE
    if said.member not in group.members:
        return UNKNOWN_MEMBER
    return NONE if said.generation == group.generation else ILLEGAL_GENERATION


def on_heartbeat(group: Group, said: Said) -> int | None:
    """Return the right answer to a heartbeat; None if it is not known here."""
    if group.state == DEAD:
        return None
    return _of_member(group, said) or (REBALANCE if group.state == PREPARING else NONE)


def on_commit(group: Group, said: Said) -> int | None:
    """Return the right answer to a commit outside of transactions; None if it is not known."""
    if group.state == DEAD:
        return None
    if said.generation < 0 and group.state == EMPTY:
        return NONE
    if said == Said("", said.generation) and said.generation < 0:
        return UNKNOWN_MEMBER
    return _of_member(group, said) or (REBALANCE if group.state == COMPLETING else NONE)


def on_transactional_commit(before: Group | None, now: Group | None, said: Said) -> int | None:
    """Return the right answer to a commit in a transaction; None if it is not known (KIP-447).

    ``before`` and ``now``: when the request arrived and when it was answered. In between, the
    transaction's coordinator is asked, so the answer is known only if both are the same. A producer
    may name no member, and as in Kafka 2.8, an instance id that no member has does not matter.
    """
    if before is None or before != now or before.state == DEAD:
        return None
    holder = None if said.instance is None else before.holder(said.instance)
    if holder not in (None, said.member):
        return FENCED_INSTANCE
    if said.member and said.member not in before.members:
        return UNKNOWN_MEMBER
    is_current = said.generation < 0 or said.generation == before.generation
    return NONE if is_current else ILLEGAL_GENERATION


def on_sync(group: Group, said: Said) -> int | None:
    """Return the right answer to a SyncGroup; None if it is not known."""
    if group.state == DEAD:
        return None
    return _of_member(group, said) or (REBALANCE if group.state == PREPARING else None)


def misjudged(right: int | None, given: int) -> str | None:
    """Return how the answer to a member differs from the right one, or ``None``.

    Errors that concern the coordinator, such as NOT_COORDINATOR, say nothing about the member.
    """
    if right is None or right == given:
        return None
    if given == NONE:
        return f"accepted, but error {right} is right"
    if given in _OF_MEMBERS and right == NONE:
        return f"refused with error {given}, but the request is right"
    if given in _OF_MEMBERS and right == FENCED_INSTANCE:
        return f"refused with error {given}, after which it joins again; error {right} ends it"
    return None


def joined(group: Group, member: str, generation: int) -> str | None:
    """Return what is wrong with an accepted JoinGroup of a member, or ``None``.

    ``group`` is the group when the answer is given; a later generation shows nothing.
    """
    if generation > group.generation:
        return f"generation {generation} is later than {group.generation}, the group's"
    if generation == group.generation and member not in group.members:
        return f"{member} is not a member of generation {generation}"
    return None


def too_large(members: int, size_max: int) -> str | None:
    """Return why a generation has more members than ``group.max.size``, or ``None`` (KIP-389)."""
    if members <= size_max:
        return None
    return f"the generation has {members} members, and group.max.size is {size_max}"


def not_rejoined(
    before: Mapping[str, int], now: Mapping[str, int], listed: Mapping[str, str | None]
) -> str | None:
    """Return which member is in a generation without having joined it, or ``None``.

    ``before`` and ``now`` count the JoinGroup requests of each member of the former generation,
    until that generation and this one began; ``listed`` are the members of this one.
    """
    for member, count in before.items():
        if listed.get(member, "") is None and now.get(member, 0) == count:
            return f"{member} is a member of the generation, but has not joined it"
    return None


def not_rebalanced(
    before: Group, member: str, generation: int, *, is_changed: bool, is_leader: bool
) -> str | None:
    """Return why a member's JoinGroup must not be answered in this generation, or ``None``.

    ``before`` is the group when the request arrived. is_changed: whether the member has changed its
    protocols or its subscription.
    """
    if generation != before.generation or member not in before.members:
        return None
    if is_changed and before.state in (COMPLETING, STABLE):
        return f"{member} has changed its subscription, and generation {generation} goes on"
    if is_leader and before.state == STABLE:
        return f"{member}, the leader, has joined again, and generation {generation} goes on"
    return None


def stays(before: Group, now: Group, member: str, instance: str | None) -> str | None:
    """Return which member should have left or stayed, as its LeaveGroup was accepted, or ``None``.

    ``before`` and ``now``: when the request arrived and when it was answered. A member is named by
    its id, or by its instance id alone; member ids are not used again. A member that was replaced
    by another one with its instance id cannot leave in its place (KIP-345).
    """
    holder = None if instance is None else before.holder(instance)
    if not member and holder is not None:
        member = holder
    if member in now.members:
        return f"{member} is still a member"
    if holder is not None and holder != member:
        return f"{member} has left as {instance}, and {holder} has this instance id"
    return None


def deleted(group: Group) -> str | None:
    """Return why a group must not be deleted, or ``None``; ``group`` is it at the request."""
    return f"it has members: {sorted(group.members)}" if group.members else None


class Transaction(NamedTuple):
    """A transactional id, as its coordinator has it."""

    producer: int
    epoch: int
    state: str
    partitions: Collection[str]
    last_epoch: int = -1
    """The epoch before, if the producer itself has asked for the current one; else -1."""


ONGOING: Final = "ONGOING"
_ENDED: Final = {"COMPLETE_COMMIT": True, "COMPLETE_ABORT": False}


def of_producer(
    before: Transaction | None, now: Transaction | None, producer: int, epoch: int
) -> str | None:
    """Return why a producer's request must not have been accepted, or ``None``.

    ``before`` and ``now`` are the transactional id when the request arrived and when it was
    answered; None if it is not known.
    """
    known = [each for each in (before, now) if each is not None]
    if not known or any((each.producer, each.epoch) == (producer, epoch) for each in known):
        return None
    current = known[-1]
    return (
        f"producer {producer} with epoch {epoch} was accepted, but the current one is "
        f"{current.producer} with epoch {current.epoch}"
    )


def ended(before: Transaction, *, is_commit: bool) -> str | None:
    """Return why a transaction must not have been ended so, or ``None``."""
    was = _ENDED.get(before.state)
    if was is None or was == is_commit:
        return None
    return f"the transaction had ended already, with the opposite result ({before.state})"


def issued(highest: int | None, epoch: int) -> str | None:
    """Return why this epoch must not be issued to a new producer, or ``None``.

    ``highest`` is the highest epoch of the producer id that was issued before the request.
    """
    if highest is None or epoch > highest:
        return None
    return f"epoch {epoch} was issued, although {highest} was issued before"


def named(
    before: Transaction | None, producer: int, epoch: int, given: tuple[int, int]
) -> str | None:
    """Return why InitProducerId must not accept the producer that it names, or ``None``.

    Accepted are the current producer id, with the current epoch or with the one before it if the
    producer has asked for the current one, and the former id with an exhausted epoch, to which no
    run gets (KIP-360). A transactional id without an epoch accepts every producer. ``given`` is the
    producer id and the epoch in the answer.
    """
    if producer < 0 or before is None or before.epoch < 0:
        return None
    if producer != before.producer:
        return f"producer {producer} with epoch {epoch} was accepted in place of {before.producer}"
    if epoch < before.epoch and epoch != before.last_epoch:
        return f"epoch {epoch} of producer {producer} was accepted, but {before.epoch} replaced it"
    if given[0] == producer and given[1] <= epoch:
        return f"epoch {epoch} of producer {producer} was accepted, and {given[1]} follows it"
    return None


def missing(now: Transaction, added: Collection[str]) -> str | None:
    """Return which added partitions an open transaction lacks, or ``None``."""
    lost = sorted(set(added) - set(now.partitions)) if now.state == ONGOING else []
    return f"it lacks {', '.join(lost)}, whose addition was acknowledged" if lost else None
