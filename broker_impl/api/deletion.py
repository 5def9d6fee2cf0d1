"""DeleteRecords (API 21), v0-v2: moves the log start of partitions forward (KIP-107).

A request is answered once all live replicas have applied the new log start, or after its timeout.
An offset of -1 means the high watermark. The new log start is on the leader's disk before the
response.

Refuses: offsets that are not committed, internal topics, logs whose cleanup policy is only compact.
"""

from typing import Any

from broker_impl.api.registry import RequestContext, api
from broker_impl.controller import topics as topic_rules
from broker_impl.errors import ErrorCode
from broker_impl.replica.replicas import Deletion
from broker_impl.wire.messages.delete_records_request import DeleteRecordsRequest
from broker_impl.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker_impl.wire.types import Offset, TopicPartition

Outcome = tuple[ErrorCode, Offset]


@api(21, range(3))
def delete_records(context: RequestContext, request: DeleteRecordsRequest) -> Any:
    """Move each log's start to the requested offset, and wait for the replicas."""
    outcomes: dict[TopicPartition, Outcome | None] = {}
    open_ends: dict[TopicPartition, Deletion] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            deletion = _delete(context, tp, partition.offset)
            outcomes[tp] = None
            if deletion.error is ErrorCode.NONE:
                open_ends[tp] = deletion
            else:
                outcomes[tp] = deletion.error, -1

    def attempt(expired: bool) -> DeleteRecordsResponse | None:
        for tp, deletion in tuple(open_ends.items()):
            outcome = context.services.replicas.deleted(tp, deletion)
            if outcome is None and expired:
                outcome = ErrorCode.REQUEST_TIMED_OUT, -1
            if outcome is not None:
                outcomes[tp] = outcome
                del open_ends[tp]
        return None if open_ends else _response(outcomes)

    answer = attempt(False)
    if answer is not None:
        return answer
    return context.services.waiting.park(open_ends, attempt, max(0, request.timeout_ms) / 1000)


def _delete(context: RequestContext, tp: TopicPartition, offset: Offset) -> Deletion:
    if tp.topic in topic_rules.INTERNAL:
        return Deletion(ErrorCode.INVALID_TOPIC_EXCEPTION)
    deletion = context.services.replicas.delete_records(tp, offset)
    if deletion.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Deletion(context.services.view.not_here(tp))
    return deletion


def _response(outcomes: dict[TopicPartition, Outcome | None]) -> DeleteRecordsResponse:
    topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for tp, outcome in outcomes.items():
        assert outcome is not None, "every partition has a result when the response is written"
        error, low_watermark = outcome
        topics.setdefault(tp.topic, []).append(
            DeleteRecordsPartitionResult(
                partition_index=tp.partition, low_watermark=low_watermark, error_code=error
            )
        )
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=rows) for name, rows in topics.items()
        ]
    )
