"""Bugs in who leads what, and in whose orders count."""

from collections.abc import Container, Sequence

from broker_impl.controller.election import Choice
from broker_impl.mutants import mutant
from broker_impl.wire.types import BrokerId


@mutant(
    "preferred-not-in-isr",
    of="broker_impl.controller.election:preferred",
    source="C10; KAFKA-9866 is about its neighbour",
    kind="mutation",
    symptom="lost-write",
    schedule="The preferred leader is alive and does not reach the leader of now until leaderships "
    "are balanced.",
)
def preferred(
    replicas: Sequence[BrokerId],
    leader: BrokerId,
    isr: tuple[BrokerId, ...],
    candidates: Container[BrokerId],
) -> Choice | None:
    """Leadership goes back to the preferred replica as soon as it is alive, in sync or not.

    It lacks what was committed while it was away. The others take it for their leader and cut off
    what it does not have, though all of them had it: no machine was lost, nor any disk.
    """
    wish = replicas[0]
    if leader == wish or wish not in candidates:
        return None
    stay = (replica for replica in isr if replica in candidates and replica != wish)
    return Choice(wish, (wish, *stay))
