"""The rules by which a leader answers appends with acks=all."""

from broker_impl.errors import ErrorCode
from broker_impl.replica import isr
from broker_impl.wire.types import Epoch, Offset


def is_abandoned(leads: bool, appended_in: Epoch, leading_since: Epoch) -> bool:
    """Return whether the replica lost leadership after it accepted an append, if only for a while.

    If so, another leader's log may have replaced the record, and the append's outcome is unknown
    (KAFKA-1148, KAFKA-2960). ``leading_since`` is the first epoch of the current leadership.
    """
    return not leads or appended_in < leading_since


def outcome(
    required: Offset, high_watermark: Offset, replicated: Offset, in_sync: int, isr_min: int
) -> ErrorCode | None:
    """The response to an append whose records end before ``required``; None: still waiting.

    The append is acknowledged once it is committed and the maximal ISR is still large enough. If
    the ISR has shrunk since the append, the response is NOT_ENOUGH_REPLICAS_AFTER_APPEND: the
    record is in the log, but its outcome is unknown. ``replicated`` can be ahead of the high
    watermark, which does not advance while the ISR is below min.insync.replicas.
    """
    if high_watermark < required and replicated < required:
        return None
    if not isr.enough_in_sync(in_sync, isr_min):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE if high_watermark >= required else None
