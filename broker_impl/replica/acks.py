"""acks=all: when an append may be acknowledged."""

from broker_impl.errors import ErrorCode
from broker_impl.replica import isr
from broker_impl.wire.types import Epoch, Offset


def is_abandoned(leads: bool, appended_in: Epoch, leading_since: Epoch) -> bool:
    """Has the replica ceased to lead since it took an append, if only for a while?

    Then another log may have won, and the record's fate is open (KAFKA-1148, KAFKA-2960).
    ``leading_since`` is the first epoch of the leadership of now.
    """
    return not leads or appended_in < leading_since


def outcome(
    required: Offset, high_watermark: Offset, replicated: Offset, in_sync: int, isr_min: int
) -> ErrorCode | None:
    """The answer to an append that ends before ``required``; None: not yet.

    Acknowledged once it is committed and the maximal ISR is still large enough. An ISR that
    shrank meanwhile makes it NOT_ENOUGH_REPLICAS_AFTER_APPEND: the record is there, its fate is
    open. ``replicated`` runs ahead of a watermark that is held below min.insync.replicas.
    """
    if high_watermark < required and replicated < required:
        return None
    if not isr.enough_in_sync(in_sync, isr_min):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE if high_watermark >= required else None
