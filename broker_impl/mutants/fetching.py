"""Bugs in how a follower handles its leader's answers."""

from broker_impl.mutants import mutant
from broker_impl.wire.types import Epoch


@mutant(
    "truncate-after-fetcher-removed",
    of="broker_impl.replica.follower:counts",
    source="A14, KAFKA-13207, KAFKA-8012",
    kind="historic",
    symptom="crash",
    schedule="A follower whose log is longer than its leader's sends a fetch, and is elected "
    "leader before it receives the response that their logs diverge.",
    tier=2,
)
def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """A replica obeys an answer in whatever role it has when the answer arrives, even as leader.

    A replica that asked as a follower may have become the leader since, elected with records that
    its former leader never had. The answer makes it truncate them below the start of its own epoch,
    so what it has as the leader is gone. Kafka continued in this state and lost committed records;
    here the leader notices that its log was truncated under it, and the broker exits.
    """
    return True
