"""ListOffsets (API 2), v0-v7, and OffsetForLeaderEpoch (API 23), v0-v4.

They return the start and end of a log, the offset of a timestamp, and the end of a leader epoch.
The end is returned only once it cannot move back (KIP-207); both requests are fenced by leader
epoch (KIP-320).

Refuses: a partition that occurs twice, a negative timestamp without a meaning.
"""

from collections import Counter
from typing import Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.replica import segment_listing
from broker_impl.replica.results import EARLIEST, LATEST, MAX_TIMESTAMP, ListedOffset
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker_impl.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from broker_impl.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from broker_impl.wire.types import TopicPartition

_SINCE: Final = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7}
"""The first version in which a negative timestamp has a special meaning (KIP-734)."""


@api(2, range(8))
def list_offsets(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Return one offset per partition and timestamp (-1: end, -2: start, -3: largest timestamp).

    In v0, return a list of the starts of segments for each.
    """
    if context.version == 0:
        return _list_segments(context, request)
    asked = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            if asked[tp] > 1:
                found = ListedOffset(error=ErrorCode.INVALID_REQUEST)
            elif partition.timestamp < 0 and context.version < _SINCE.get(partition.timestamp, 99):
                found = ListedOffset(error=ErrorCode.UNSUPPORTED_VERSION)
            else:
                found = context.services.replicas.list_offset(
                    tp,
                    timestamp=partition.timestamp,
                    current_leader_epoch=partition.current_leader_epoch,
                    isolation=request.isolation_level,
                    replica_id=request.replica_id,
                )
            rows.append(
                ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index,
                    error_code=_error(context, tp, found.error),
                    timestamp=found.timestamp,
                    offset=found.offset,
                    leader_epoch=found.leader_epoch if context.version >= 4 else -1,
                )
            )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    return ListOffsetsResponse(topics=topics)


def _list_segments(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            found = segment_listing.listed(
                context.services.replicas,
                tp,
                partition.timestamp,
                partition.max_num_offsets,
                request.replica_id,
            )
            row = ListOffsetsPartitionResponse(partition_index=tp.partition)
            if isinstance(found, ErrorCode):
                row.error_code = _error(context, tp, found)
            else:
                row.old_style_offsets = found
            rows.append(row)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    return ListOffsetsResponse(topics=topics)


def _error(context: RequestContext, tp: TopicPartition, error: ErrorCode) -> ErrorCode:
    """Map an error to one that the client's version knows; OFFSET_NOT_AVAILABLE exists since v5."""
    if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return context.services.view.not_here(tp)
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and context.version < 5:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return error


@api(23, range(5))
def offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return where the log of a leader epoch ends, for each partition (KIP-101, KIP-279)."""
    topics = []
    for topic in request.topics:
        rows = []
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic, partition.partition)
            error, epoch, end = context.services.replicas.end_offset_for_epoch(
                tp,
                epoch=partition.leader_epoch,
                current_leader_epoch=partition.current_leader_epoch,
            )
            rows.append(
                EpochEndOffset(
                    error_code=_error(context, tp, error),
                    partition=partition.partition,
                    leader_epoch=epoch,
                    end_offset=end,
                )
            )
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
    return OffsetForLeaderEpochResponse(topics=topics)
