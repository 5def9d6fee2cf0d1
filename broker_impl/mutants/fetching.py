"""Bugs in what a follower makes of its leader's answers."""

from broker_impl.mutants import mutant
from broker_impl.wire.types import Epoch


@mutant(
    "truncate-after-fetcher-removed",
    of="broker_impl.replica.follower:counts",
    source="A14, KAFKA-13207, KAFKA-8012",
    kind="historic",
    symptom="crash",
    schedule="A follower with more than its leader has fetches, and comes to lead itself before "
    "the answer, that their logs have parted, is there.",
    tier=2,
)
def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """An answer is obeyed by whoever the replica is when it comes, the leader too.

    Who has asked as a follower may lead by then, elected with records that its former leader never
    had. Told to cut them off it does, below the start of its own epoch: what it has to offer as the
    leader is gone. Kafka goes on so and loses what was committed; here the leader sees that its log
    is not its own any more, and ends.
    """
    return True
