"""Produce (API 0), v3-v9; v0-v2 are advertised and not served.

A request is answered once every partition has a result. acks=all waits for the high watermark;
acks=0 is not answered. Versions below 3 are advertised because librdkafka derives its codecs from
them (KAFKA-18659); their record formats are not supported.

Refuses: batches that are not magic 2, a wrong CRC, zstd below v7 (KIP-110), a sequence gap
(KIP-98), an old producer epoch, a partition that occurs twice, internal topics, a transaction that
its coordinator does not know to be open. A batch is rejected as a whole; if records are the reason,
the response names them (v8, KIP-467).

A design choice: the first batch of a transaction in a partition is appended only once the
coordinator has confirmed that the transaction is open and contains the partition (KIP-890, part 1;
Kafka does so since 3.6, for clients of TV1 too). Otherwise a batch that arrives after the end of
its own transaction would begin a transaction that no producer ends. Later requests on the same
connection wait.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from broker_impl.api import verification
from broker_impl.api.registry import CloseConnection, RequestContext, api
from broker_impl.controller import topics as topic_rules
from broker_impl.errors import ErrorCode, WireError
from broker_impl.replica.events import AppendResult
from broker_impl.wire import batch
from broker_impl.wire.messages.produce_request import ProduceRequest
from broker_impl.wire.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from broker_impl.wire.types import TopicPartition

_ZSTD_SINCE = 7
"""The first version of clients that may send zstd (KIP-110)."""

Results = dict[TopicPartition, AppendResult]


@api(0, range(3, 10), advertise_from=0)
def produce(context: RequestContext, request: ProduceRequest) -> Any:
    """Append each partition's batch; wait for replication as ``acks`` demands."""
    if request.transactional_id is not None:
        begun = verification.begun(context.services.replicas, request)
        if begun:
            return _produce_verified(context, request, begun)
    return _produce(context, request, {}, {})


async def _produce_verified(
    context: RequestContext, request: ProduceRequest, begun: list[verification.Begun]
) -> Any:
    assert request.transactional_id is not None, (
        "only transactional produce requests begin a transaction"
    )
    refused = await verification.refusals(context.services, request.transactional_id, begun)
    return _produce(context, request, {each.tp: each.guard for each in begun}, refused)


def _produce(
    context: RequestContext,
    request: ProduceRequest,
    guards: Mapping[TopicPartition, int],
    refused: Mapping[TopicPartition, ErrorCode],
) -> Any:
    results = _append_all(context, request, guards, refused)
    if request.acks == 0:
        _close_on_error(results)
        return None
    if request.acks != -1:
        return _response(results, {})
    return _when_replicated(context, request, results)


def _close_on_error(results: Results) -> None:
    """Close the connection if an append failed: with acks=0 there is no response with the error.

    The client must refresh its metadata (KAFKA-955).
    """
    errors = [(tp, result.error) for tp, result in results.items() if result.error]
    if errors:
        tp, error = errors[0]
        raise CloseConnection(
            f"produce request with acks=0 failed for {len(errors)} partitions, {tp}: {error.name}"
        )


def _when_replicated(context: RequestContext, request: ProduceRequest, results: Results) -> Any:
    """Answer at once if all appends are acknowledged, and park the request otherwise."""
    outcomes: dict[TopicPartition, ErrorCode] = {}
    open_ends = {tp: result for tp, result in results.items() if not result.error}

    def attempt(expired: bool) -> ProduceResponse | None:
        for tp, result in tuple(open_ends.items()):
            outcome = context.services.replicas.acknowledged(tp, result)
            if outcome is None and expired:
                outcome = ErrorCode.REQUEST_TIMED_OUT
            if outcome is not None:
                outcomes[tp] = outcome
                del open_ends[tp]
        return None if open_ends else _response(results, outcomes)

    answer = attempt(False)
    if answer is not None:
        return answer
    return context.services.waiting.park(open_ends, attempt, request.timeout_ms / 1000)


def _append_all(
    context: RequestContext,
    request: ProduceRequest,
    guards: Mapping[TopicPartition, int],
    refused: Mapping[TopicPartition, ErrorCode],
) -> Results:
    """Append each partition's batch, unless the request or that partition is refused."""
    rows = [
        (TopicPartition(topic.name, partition.index), partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    ]
    counts = Counter(tp for tp, _ in rows)
    results: Results = {}
    for tp, records in rows:
        error = _refusal(request, tp, records, counts[tp]) or refused.get(tp, ErrorCode.NONE)
        if not error and context.version < _ZSTD_SINCE and is_zstd(records):
            error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if error:
            results[tp] = AppendResult(error=error)
        else:
            assert isinstance(records, memoryview), "records are decoded as a memoryview"
            results[tp] = _append(context, request, tp, records, guards.get(tp))
    return results


def _refusal(request: ProduceRequest, tp: TopicPartition, records: object, count: int) -> ErrorCode:
    """Why a partition's records are not appended; ``count``: how often the request names it."""
    if request.acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if count > 1:
        # A partition has one row in the response, which cannot report two appends.
        return ErrorCode.INVALID_REQUEST
    if tp.topic in topic_rules.INTERNAL:
        # Only coordinators write to internal topics, and they do not use Produce.
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.INVALID_RECORD if records is None else ErrorCode.NONE


def is_zstd(records: Any) -> bool:
    """Return whether these records are a batch that is compressed with zstd."""
    try:
        header = batch.parse_header(records)
    except WireError:
        return False  # the log refuses it
    return header.magic == batch.MAGIC and header.compression == batch.ZSTD


def _append(
    context: RequestContext,
    request: ProduceRequest,
    tp: TopicPartition,
    records: memoryview,
    guard: int | None,
) -> AppendResult:
    services = context.services
    result = services.replicas.append(tp, records, acks=request.acks, guard=guard)
    if result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        result = AppendResult(error=services.view.not_here(tp))
    if result.error:
        services.counts.failed_produces += 1
    else:
        count = result.last_offset - result.base_offset + 1
        services.counts.produced(tp.topic, len(records), count)
    return result


def _response(results: Results, outcomes: dict[TopicPartition, ErrorCode]) -> ProduceResponse:
    topics: dict[str, list[PartitionProduceResponse]] = {}
    for tp, result in results.items():
        error = result.error or outcomes.get(tp, ErrorCode.NONE)
        topics.setdefault(tp.topic, []).append(
            PartitionProduceResponse(
                index=tp.partition,
                error_code=error,
                base_offset=-1 if error else result.base_offset,
                log_append_time_ms=-1 if error else result.log_append_time,
                log_start_offset=-1 if error else result.log_start_offset,
                record_errors=[
                    BatchIndexAndErrorMessage(number, why) for number, why in result.record_errors
                ],
                error_message=result.message if result.record_errors else None,
            )
        )
    return ProduceResponse(
        responses=[
            TopicProduceResponse(name=name, partition_responses=rows)
            for name, rows in topics.items()
        ]
    )
