"""Reads from a replica: fetches of consumers and followers, and offsets by timestamp."""

from collections.abc import Mapping

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.log import reading
from broker_impl.replica import fencing, follower, isr_changes, selection, watermark
from broker_impl.replica.events import Role
from broker_impl.replica.replica_state import ReplicaState
from broker_impl.replica.results import EARLIEST, LATEST, MAX_TIMESTAMP, FetchResult, ListedOffset
from broker_impl.wire.types import BrokerId, Epoch, Offset


def preferred_read_replica(
    replica: ReplicaState, offset: Offset, rack: str, racks: Mapping[BrokerId, str | None]
) -> BrokerId | None:
    """Return the replica from which a consumer in this rack should fetch; None: this leader.

    ``racks`` contains the rack of each live broker.
    """
    if replica.role is not Role.LEADER:
        return None
    log = replica.log
    me = selection.Candidate(
        replica.me, racks.get(replica.me), log.start_offset, log.end_offset, is_in_sync=True
    )
    others = [
        selection.Candidate(
            broker, racks[broker], remote.log_start, remote.log_end, broker in replica.isr
        )
        for broker, remote in replica.remotes.items()
        if broker in racks
    ]
    return selection.preferred(rack, me, others, offset)


def follower_error(
    replica: ReplicaState, replica_id: BrokerId, current_leader_epoch: Epoch
) -> ErrorCode:
    """Return the error for a follower with an old epoch, or that is not an assigned replica."""
    error = fencing.follower_fetch(current_leader_epoch, replica.leader_epoch)
    if error is ErrorCode.NONE and replica_id not in replica.remotes:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return error


def read(
    replica: ReplicaState,
    offset: Offset,
    *,
    replica_id: BrokerId,
    isolation: int,
    bytes_max: int,
    last_fetched_epoch: Epoch,
    at_least_one: bool,
) -> FetchResult:
    """Return whole batches from the one that contains ``offset``, up to this reader's limit."""
    log = replica.log
    answer = None
    if last_fetched_epoch >= 0:
        answer = log.epochs.end_offset_for(last_fetched_epoch, log.end_offset)
        if follower.UNDEFINED in answer:
            return FetchResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    diverges = answer is not None and follower.diverges(last_fetched_epoch, offset, answer)
    # OFFSET_OUT_OF_RANGE takes precedence over a diverging epoch (KAFKA-12996): only offsets
    # that exist in this log can be compared.
    if offset < log.start_offset or (not diverges and offset > log.end_offset):
        return FetchResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    stable = replica.last_stable_offset
    limit = watermark.read_end(
        _read_limit(replica, replica_id, isolation, stable),
        log.end_offset,
        is_leader=replica.role is Role.LEADER,
    )
    found = reading.NOTHING
    if not diverges and offset < limit:
        found = log.read_from(
            offset,
            bytes_max=bytes_max,
            limit=limit,
            at_least_one=at_least_one,
            skip_empty=replica_id < 0,
        )
    return FetchResult(
        high_watermark=replica.high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.start_offset,
        records=found.records,
        cannot_grow=found.cannot_grow,
        cut_at=found.cut_at,
        diverging=answer if diverges else None,
        settled=not diverges and offset >= limit and replica.role is Role.LEADER,
    )


def with_aborted(replica: ReplicaState, offset: Offset, result: FetchResult) -> FetchResult:
    """Return the result with the aborted transactions, for a read_committed consumer."""
    if result.error is not ErrorCode.NONE:
        return result
    aborted = replica.log.aborted_transactions(offset, result.records)
    return msgspec.structs.replace(result, aborted=aborted)


def answer_follower(replica: ReplicaState, broker: BrokerId, result: FetchResult) -> FetchResult:
    """Return the result with the high watermark as of now, after the fetch was counted."""
    if result.error is not ErrorCode.NONE or result.diverging is not None:
        return result
    remote = replica.remotes[broker]
    news = replica.high_watermark > remote.high_watermark_sent
    settled = result.settled and isr_changes.is_settled(replica, broker)
    if news or result.high_watermark != replica.high_watermark or settled != result.settled:
        remote.high_watermark_sent = replica.high_watermark
        return FetchResult(
            high_watermark=replica.high_watermark,
            last_stable_offset=replica.last_stable_offset,
            log_start_offset=result.log_start_offset,
            records=result.records,
            cannot_grow=result.cannot_grow,
            cut_at=result.cut_at,
            news=news,
            settled=settled,
        )
    return result


def list_offset(
    replica: ReplicaState, timestamp: int, *, isolation: int, replica_id: int
) -> ListedOffset:
    """The offset of the first record at or after a time; LATEST, EARLIEST: the log's ends.

    Both ends are as this reader may see them. Until the high watermark has reached the start of
    the epoch, a client's request for an offset beyond it is refused: a former leader may have
    returned a later end (KIP-207).
    """
    if timestamp == EARLIEST:
        return _earliest(replica)
    is_consumer = replica_id == watermark.CONSUMER
    limit = _read_limit(replica, replica_id, isolation, replica.last_stable_offset)
    is_behind = is_consumer and not watermark.may_list_end(
        replica.high_watermark, replica.epoch_start
    )
    unavailable = ErrorCode.OFFSET_NOT_AVAILABLE if is_behind else ErrorCode.NONE
    if timestamp != LATEST:
        return _at_time(replica, timestamp, limit) or ListedOffset(error=unavailable)
    if is_behind:
        return ListedOffset(error=unavailable)
    if is_consumer and not isolation:
        replica.exposed = max(replica.exposed, limit)
    end = watermark.listed_end(limit, replica.high_watermark)
    return ListedOffset(offset=end, leader_epoch=replica.leader_epoch)


def _earliest(replica: ReplicaState) -> ListedOffset:
    log = replica.log
    first = log.epochs.entries[:1]
    epoch = first[0].epoch if first and first[0].start <= log.start_offset else -1
    start = watermark.listed_start(log.start_offset, log.segments[0].base_offset)
    return ListedOffset(offset=start, leader_epoch=epoch)


def _at_time(replica: ReplicaState, timestamp: int, limit: Offset) -> ListedOffset | None:
    log = replica.log
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp(limit=log.end_offset)
    else:
        found = log.offset_for_timestamp(timestamp, limit=log.end_offset)
    if found is None or not watermark.is_listed(found.offset, limit):
        return None
    return ListedOffset(
        timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
    )


def _read_limit(
    replica: ReplicaState, replica_id: BrokerId, isolation: int, stable: Offset
) -> Offset:
    end = replica.log.end_offset
    return watermark.read_limit(replica_id, isolation, replica.high_watermark, stable, end)
