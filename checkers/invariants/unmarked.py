"""Which transactions wait for markers that they could have.

A transaction that is committed or aborted ends when each of its partitions has a marker, and its
transactional id cannot be used before. The coordinator sends a marker again until it is written,
and needs none for a partition whose topic was deleted. So in a cluster that has recovered, only one
thing may keep a marker from being written: a later epoch of the producer in the log, for which the
leader refuses it (KIP-98).
"""

from collections.abc import Iterator

from checkers.invariants.step import Step
from checkers.invariants.wait import Wait
from model.snapshot import Unmarked


class Waiting:
    """Follows the transactions that wait for markers from one snapshot to the next."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, int, str], int] = {}
        """By transactional id, producer id and epoch, and partition."""

    def step(self, step: Step) -> list[Wait]:
        """Process the next snapshot; return what waits without a reason."""
        known, self._since = self._since, {}
        found = []
        for coordinator, name, transaction in _unmarked(step):
            for key in transaction.partitions:
                place = (name, *transaction[:2], key)
                since_ns = self._since[place] = known.get(place, step.now.time_ns)
                lacks = _lacks(step, key, transaction)
                if lacks is not None:
                    why = (
                        f"transactional id {name} waits for a marker of producer"
                        f" {transaction.producer} with epoch {transaction.producer_epoch}, and"
                        f" {lacks}"
                    )
                    found.append(Wait(key, coordinator, since_ns, why))
        return found


def _unmarked(step: Step) -> Iterator[tuple[int, str, Unmarked]]:
    for number, broker in step.now.brokers.items():
        for name, transaction in broker.unmarked.items():
            yield number, name, transaction


def _lacks(step: Step, key: str, transaction: Unmarked) -> str | None:
    """Return why nothing keeps the transaction from its end, or ``None`` if something may."""
    state = step.partition(key)
    if state is None:
        return "the topic was deleted"
    leader = step.now.brokers.get(state.leader)
    replica = None if leader is None else leader.replicas.get(key)
    if replica is None or replica.role != "leader" or step.is_compacted(key):
        return None
    for number in range(replica.batches.count - 1, -1, -1):
        batch = replica.batches.all[number]
        if batch.producer == transaction.producer:
            is_refused = batch.producer_epoch > transaction.producer_epoch
            return None if is_refused else "no later epoch of the producer is in the log"
    return None
