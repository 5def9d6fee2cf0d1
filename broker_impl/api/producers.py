"""InitProducerId (API 22), v0-v4, and DescribeProducers (API 61), v0.

An idempotent producer gets a unique id with epoch 0 (KIP-98), also when its request contains an old
id (KIP-360: without a transactional id, no epoch is bumped). For a transactional id, the
coordinator returns the next epoch once it is stored; an open transaction is aborted first, and the
client retries (CONCURRENT_TRANSACTIONS). Clients know PRODUCER_FENCED since v4. An old id without
its epoch, or an epoch without its id, is refused.
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.messages.describe_producers_request import DescribeProducersRequest
from broker_impl.wire.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.init_producer_id_response import InitProducerIdResponse
from broker_impl.wire.types import TopicPartition

_FENCED_SINCE = 4


@api(22, range(5))
async def init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Return a new producer id, or the next epoch of a transactional producer."""
    error, number = ErrorCode.NONE, -1
    if (request.producer_id == -1) is not (request.producer_epoch == -1):
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1
        )
    if request.transactional_id is not None:
        answer = await context.services.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
        )
        error = answer.error
        if error is ErrorCode.PRODUCER_FENCED and context.version < _FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(
            error_code=error, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
        )
    try:
        number = await context.services.next_producer_id()
    except ApiError as refusal:
        error = refusal.code
    return InitProducerIdResponse(
        error_code=error, producer_id=number, producer_epoch=-1 if error else 0
    )


@api(61, range(1))
def describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Return the producer state of each partition of which this broker has a replica (KIP-664)."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _producers(context, TopicPartition(topic.name, number))
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _producers(context: RequestContext, tp: TopicPartition) -> PartitionResponse:
    found = context.services.replicas.producers(tp)
    if isinstance(found, ErrorCode):
        if found is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found = context.services.view.not_here(tp)
        return PartitionResponse(partition_index=tp.partition, error_code=found)
    return PartitionResponse(
        partition_index=tp.partition,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.batches[-1].timestamp_ms if entry.batches else -1,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=(
                    -1 if entry.transaction_start is None else entry.transaction_start
                ),
            )
            for producer_id, entry in found.items()
        ],
    )
