"""What brokers accept from transactions, and which offsets they call stable.

- ``accepted-outside-transaction``: a leader accepts the first records of a transaction in a
  partition, and a group coordinator the first offsets, only while the transaction is open and has
  that partition (KIP-890), and not once its coordinator has decided how it ends. Otherwise no
  marker may end what was appended: readers wait for ever.
- ``producer-refused``: a group coordinator accepts no offsets of an older producer epoch than that
  of the producer's open transaction in the group's partition (KIP-98).
- ``stable-offset-settled``: a request for stable offsets is not answered with an offset while an
  open transaction has committed another one for the same partition (KIP-447).
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from checkers.invariants.coordinated import ONGOING, Transaction

PREPARED: Final = ("PREPARE_COMMIT", "PREPARE_ABORT")
"""The states of a transaction that is decided and has not ended in all of its partitions."""


class Coordinated(NamedTuple):
    """A transactional id at one moment, according to all brokers that run."""

    newest: int
    """The latest leader epoch, of its partition of ``__transaction_state``, that a broker knows."""
    epoch: int
    """The leader epoch in which a broker coordinates it; -1: none can say what its state is."""
    transaction: Transaction | None
    """Its state; None if the coordinator does not know it."""
    begun: int
    """The requests so far that may have opened a transaction or added a partition to it."""
    is_alone: bool = False
    """Does no other broker take itself for the coordinator?"""

    @property
    def is_certain(self) -> bool:
        """Is no later coordinator being elected or loading?"""
        return self.newest == self.epoch >= 0


class Accepted(NamedTuple):
    """Records or offsets that were appended for a transaction."""

    producer: int
    epoch: int
    partition: str
    """The partition to which they were appended."""


def outside(before: Coordinated, after: Coordinated, accepted: Accepted) -> str | None:
    """Return why this must not have been accepted, or ``None``.

    ``before`` and ``after``: when the request arrived and when it was answered. No transaction of
    the producer was open in the partition when the request arrived.
    """
    if not (before.is_certain and after.is_certain and before.epoch == after.epoch):
        return None
    if before.begun != after.begun:
        return None
    was, became = _stage(before, accepted), _stage(after, accepted)
    if was == "open" or (was == "closed" and became != "closed"):
        return None
    known = before.transaction if was == "decided" else after.transaction
    state = "is not known" if known is None else f"is {known.state} in epoch {known.epoch}"
    return (
        f"{accepted.partition}: producer {accepted.producer} with epoch {accepted.epoch} has begun"
        f" a transaction there, but its transactional id {state}"
    )


def _stage(at: Coordinated, accepted: Accepted) -> Literal["open", "decided", "closed"]:
    """Return whether the transaction takes what was accepted.

    It is decided once its only coordinator is already ending it.
    """
    known = at.transaction
    if known is None or known.producer != accepted.producer or known.epoch < accepted.epoch:
        return "closed"
    has_partition = accepted.partition in known.partitions
    if known.epoch > accepted.epoch:
        # A coordinator that was replaced and does not know it may still answer that the transaction
        # is open. The marker of the new one ends what was appended, if it is not yet written.
        return "open" if known.state in PREPARED and has_partition else "closed"
    if known.state in PREPARED:
        return "decided" if at.is_alone else "open"
    return "open" if known.state == ONGOING and has_partition else "closed"


def replaced(logged: int | None, producer: int, epoch: int) -> str | None:
    """Return why a producer's offsets must not have been accepted in this epoch, or ``None``.

    logged: the epoch of the producer's open transaction in the group's partition, when the request
    arrived; None: the producer has none open there.
    """
    if logged is None or epoch >= logged:
        return None
    return (
        f"offsets of producer {producer} with epoch {epoch} were accepted, but its open transaction"
        f" has epoch {logged}"
    )


def unsettled(
    answered: Sequence[str], open_: Mapping[int, Mapping[str, int]]
) -> tuple[str, int, int] | None:
    """Return a partition whose offset was called stable, and the producer that may change it.

    answered: the partitions whose offsets were returned as stable. open_: for each producer whose
    transaction is open in the group's partition, the partitions for which the group has accepted
    offsets in that transaction, with the offset. Returns partition, producer id and offset.
    """
    for producer, offsets in open_.items():
        for partition in answered:
            if partition in offsets:
                return partition, producer, offsets[partition]
    return None
