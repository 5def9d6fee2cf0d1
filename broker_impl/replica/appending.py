"""Appends to the leader's log, and when they are acknowledged."""

from broker_impl.errors import ApiError, ErrorCode, RecordsRefused
from broker_impl.log.results import Appended
from broker_impl.replica import acks, isr, leading
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    Effect,
    EndTransaction,
    LogEndAdvanced,
    Role,
)
from broker_impl.replica.replica_state import ReplicaState


def append(replica: ReplicaState, event: Append, now: float, effects: list[Effect]) -> None:
    """Append a producer's batch; the first effect is the result."""
    refused = _refusal(replica, event.acks)
    if refused is not None:
        effects.append(AppendDone(refused))
        return
    try:
        appended = replica.log.append_as_leader(
            event.records,
            leader_epoch=replica.leader_epoch,
            now_ms=event.now_ms,
            guard=event.guard,
            by_coordinator=event.by_coordinator,
        )
    except ApiError as error:
        effects.append(AppendDone(_rejected(error)))
        return
    _appended(replica, appended, now, effects)


def _rejected(error: ApiError) -> AppendResult:
    errors = error.errors if isinstance(error, RecordsRefused) else ()
    return AppendResult(error=error.code, message=error.message, record_errors=errors)


def end_transaction(
    replica: ReplicaState, event: EndTransaction, now: float, effects: list[Effect]
) -> None:
    """Append the marker of a transaction; the first effect is the result."""
    refused = _refusal(replica, -1)
    if refused is not None:
        effects.append(AppendDone(refused))
        return
    try:
        appended = replica.log.append_marker(
            event.marker, leader_epoch=replica.leader_epoch, now_ms=event.now_ms
        )
    except ApiError as error:
        effects.append(AppendDone(AppendResult(error=error.code, message=error.message)))
        return
    _appended(replica, appended, now, effects)


def _refusal(replica: ReplicaState, acks_required: int) -> AppendResult | None:
    if replica.role is not Role.LEADER:
        return AppendResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if acks_required == -1 and not isr.enough_in_sync(len(replica.isr), replica.isr_min):
        return AppendResult(
            error=ErrorCode.NOT_ENOUGH_REPLICAS,
            message=f"{len(replica.isr)} in sync, {replica.isr_min} wanted",
        )
    return None


def _appended(replica: ReplicaState, appended: Appended, now: float, effects: list[Effect]) -> None:
    log = replica.log
    result = AppendResult(
        base_offset=appended.base_offset,
        last_offset=appended.last_offset,
        log_append_time=appended.log_append_time,
        log_start_offset=log.start_offset,
        required_offset=appended.last_offset + 1,
        leader_epoch=replica.leader_epoch,
        topic_id=log.topic_id,
    )
    effects.append(AppendDone(result))
    if not appended.duplicate:
        effects.append(LogEndAdvanced(replica.tp, log.end_offset))
        leading.advance(replica, now, effects)


def acknowledged(replica: ReplicaState, result: AppendResult) -> ErrorCode | None:
    """Return the response to an append with acks=all; None while it waits for replication."""
    leads = replica.role is Role.LEADER and result.topic_id == replica.log.topic_id
    if acks.is_abandoned(leads, result.leader_epoch, replica.leading_since):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return acks.outcome(
        result.required_offset,
        replica.high_watermark,
        replica.replicated,
        len(replica.maximal_isr),
        replica.isr_min,
    )
