"""Bugs in what in-sync replicas guarantee: the watermark, acknowledgements, the ISR itself."""

from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.wire.types import Offset


@mutant(
    "ack-on-local-append",
    of="broker_impl.replica.acks:outcome",
    source="B07",
    kind="mutation",
    symptom="lost-write",
    schedule="The leader is killed, or cut off and replaced, while producers with acks=all write.",
)
def outcome(
    required: Offset, high_watermark: Offset, replicated: Offset, in_sync: int, isr_min: int
) -> ErrorCode | None:
    """acks=all is answered as soon as the leader has appended, like acks=1.

    Whatever no follower has fetched yet is acknowledged and exists once. The next leader comes from
    the ISR, which lacks it, and the old one truncates it when it returns.
    """
    return ErrorCode.NONE


@mutant(
    "no-min-isr-check",
    of="broker_impl.replica.isr:enough_in_sync",
    source="B04, KAFKA-1555",
    kind="mutation",
    symptom="lost-write",
    schedule="The followers are cut off or paused for longer than replica.lag.time.max.ms, so that "
    "the leader is alone in the ISR; then it loses its disk, or is replaced uncleanly.",
)
def enough_in_sync(in_sync: int, isr_min: int) -> bool:
    """min.insync.replicas is ignored, before the append and after it.

    A leader whose followers have all left the ISR goes on to commit and acknowledge alone. Each of
    these records exists once, which is what the setting was to exclude.
    """
    return True
