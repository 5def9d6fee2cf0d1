"""Bugs in the idempotent producer's state."""

from broker_impl.mutants import mutant


@mutant(
    "pstate-not-replicated",
    of="broker_impl.log.producers:folds_replicated_batches",
    source="D01, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="The answer to a produce is lost, the leader is killed, and the client tries again at "
    "the next leader.",
)
def folds_replicated_batches() -> bool:
    """A follower appends what it fetches and does not remember whose it was.

    Once it leads, it knows no producer. The first batch that it is sent again, because the former
    leader died before it could answer, looks new and is appended a second time.
    """
    return False
