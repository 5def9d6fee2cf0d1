"""WriteTxnMarkers (API 27), v0-v1.

A marker records the coordinator's decision as the last record of a transaction in each partition.
The request is answered once all in-sync replicas have the markers. Admin clients abort hanging
transactions with it (KIP-664).

Refuses: markers whose producer epoch or coordinator epoch is older than one seen in the partition.
"""

from typing import Any

from broker_impl.api import services
from broker_impl.api.registry import RequestContext, api
from broker_impl.coordinator.records import TOPIC as OFFSETS
from broker_impl.errors import ErrorCode
from broker_impl.log.aborted_index import Marker
from broker_impl.replica.events import AppendResult
from broker_impl.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from broker_impl.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from broker_impl.wire.types import Offset, TopicPartition

_Place = tuple[int, TopicPartition]
"""A marker's position in the request, and one of its partitions."""


@api(27, range(2))
def write_txn_markers(context: RequestContext, request: WriteTxnMarkersRequest) -> Any:
    """Append each marker to each of its partitions."""
    replicas = context.services.replicas
    outcomes: dict[_Place, ErrorCode] = {}
    open_ends: dict[_Place, AppendResult] = {}
    for number, row in enumerate(request.markers):
        marker = Marker(
            row.producer_id, row.producer_epoch, row.transaction_result, row.coordinator_epoch
        )
        for topic in row.topics:
            for partition in topic.partition_indexes:
                tp = TopicPartition(topic.name, partition)
                result = replicas.end_transaction(tp, marker)
                if result.error is ErrorCode.NONE:
                    open_ends[number, tp] = result
                elif result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    outcomes[number, tp] = context.services.view.not_here(tp)
                else:
                    outcomes[number, tp] = result.error

    def attempt(expired: bool) -> WriteTxnMarkersResponse | None:
        for place, result in tuple(open_ends.items()):
            outcome = replicas.acknowledged(place[1], result)
            if outcome is None and expired:
                outcome = ErrorCode.REQUEST_TIMED_OUT
            if outcome is not None:
                outcomes[place] = outcome
                row = request.markers[place[0]]
                if outcome is ErrorCode.NONE and place[1].topic == OFFSETS:
                    at = result.base_offset
                    offsets_count(context.services.groups, place[1].partition, row, at)
                del open_ends[place]
        return None if open_ends else _response(request, outcomes)

    answer = attempt(False)
    if answer is not None:
        return answer
    # Half of the requesting broker's timeout, so that it receives the results of the other markers.
    timeout_s = context.services.config.request_timeout_ms / 2000
    partitions = dict.fromkeys(tp for _, tp in open_ends)
    return context.services.waiting.park(partitions, attempt, timeout_s)


def offsets_count(
    groups: services.Groups, partition: int, marker: WritableTxnMarker, at: Offset
) -> None:
    """Apply a transaction's offsets, whose marker is at ``at``, before the marker is acknowledged.

    See KAFKA-17507.
    """
    groups.marked(partition, marker.producer_id, at, is_commit=marker.transaction_result)


def _response(
    request: WriteTxnMarkersRequest, outcomes: dict[_Place, ErrorCode]
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=row.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=partition,
                                error_code=outcomes[number, TopicPartition(topic.name, partition)],
                            )
                            for partition in topic.partition_indexes
                        ],
                    )
                    for topic in row.topics
                ],
            )
            for number, row in enumerate(request.markers)
        ]
    )
