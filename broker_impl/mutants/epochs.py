"""Bugs in leader epochs and truncation."""

from broker_impl.mutants import mutant
from broker_impl.wire.types import Epoch, Offset


@mutant(
    "truncate-to-hw-loss",
    of="broker_impl.replica.follower:on_new_epoch",
    source="A01, KAFKA-1211, KIP-101",
    kind="historic",
    symptom="lost-write",
    schedule="A follower restarts (or merely gets a new leader) before it has heard of the newest "
    "watermark, and the leader dies before the follower has fetched again.",
)
def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """A follower cuts its log at its own high watermark before it follows, and asks nobody.

    Its watermark lags the leader's by a round trip, and after a restart by a checkpoint's age: it
    throws away records that it holds, that the leader counted, and that were acknowledged. If the
    leader dies before they are fetched again, this follower is elected out of the ISR without
    them. Until KIP-101 that was the protocol.
    """
    return min(high_watermark, log_end)
