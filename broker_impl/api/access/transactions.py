"""Guards of requests about producers and transactions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from broker_impl.api.access import refusals
from broker_impl.api.access.guard import (
    Call,
    Check,
    Parts,
    all_denied,
    filtered,
    in_parts,
    then,
)
from broker_impl.errors import ErrorCode
from broker_impl.security.acls import Operation
from broker_impl.wire.messages import (
    add_offsets_to_txn_response,
    add_partitions_to_txn_response,
    describe_transactions_response,
    init_producer_id_response,
    txn_offset_commit_response,
    write_txn_markers_response,
)

_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_BATCHES_SINCE: Final = 4
"""The first version of AddPartitionsToTxn that brokers send to verify transactions."""


def init_producer_id(check: Check, request: Any, call: Call) -> Any:
    """WRITE on the transactional id; without one, IDEMPOTENT_WRITE or WRITE on some topic."""
    response = init_producer_id_response.InitProducerIdResponse
    if request.transactional_id is not None:
        if check.transactional_id(Operation.WRITE, request.transactional_id):
            return call(request)
        return response(error_code=_DENIED, producer_epoch=-1)
    if check.cluster(Operation.IDEMPOTENT_WRITE) or check.any_topic(Operation.WRITE):
        return call(request)
    return response(error_code=_CLUSTER_DENIED, producer_epoch=-1)


def add_partitions_to_txn(check: Check, request: Any, call: Call) -> Any:
    """WRITE on the transactional id and on each topic: if one is denied, none is added."""
    if check.context.version >= _BATCHES_SINCE:
        if check.cluster(Operation.CLUSTER_ACTION):
            return call(request)
        return add_partitions_to_txn_response.AddPartitionsToTxnResponse(error_code=_CLUSTER_DENIED)
    topics = request.v3_and_below_topics
    if not check.transactional_id(Operation.WRITE, request.v3_and_below_transactional_id):
        return _not_added(topics, lambda _: _DENIED)
    denied = {topic.name for topic in topics if not check.topic(Operation.WRITE, topic.name)}
    if not denied:
        return call(request)
    return _not_added(
        topics,
        lambda name: _TOPIC_DENIED if name in denied else ErrorCode.OPERATION_NOT_ATTEMPTED,
    )


def _not_added(topics: Any, error: Callable[[str], ErrorCode]) -> Any:
    return add_partitions_to_txn_response.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            add_partitions_to_txn_response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    add_partitions_to_txn_response.AddPartitionsToTxnPartitionResult(
                        partition_index=number, partition_error_code=error(topic.name)
                    )
                    for number in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def add_offsets_to_txn(check: Check, request: Any, call: Call) -> Any:
    """WRITE on the transactional id and READ on the group."""
    response = add_offsets_to_txn_response.AddOffsetsToTxnResponse
    if not check.transactional_id(Operation.WRITE, request.transactional_id):
        return response(error_code=_DENIED)
    if not check.group(Operation.READ, request.group_id):
        return response(error_code=_GROUP_DENIED)
    return call(request)


def end_txn(check: Check, request: Any, call: Call) -> Any:
    """WRITE on the transactional id."""
    if check.transactional_id(Operation.WRITE, request.transactional_id):
        return call(request)
    return refusals.of_end_txn()


def txn_offset_commit(check: Check, request: Any, call: Call) -> Any:
    """WRITE on the transactional id, READ on the group and on each topic."""
    if not check.transactional_id(Operation.WRITE, request.transactional_id):
        return all_denied(request, _committed(_DENIED))
    if not check.group(Operation.READ, request.group_id):
        return all_denied(request, _committed(_GROUP_DENIED))
    return in_parts(request, _committed(_TOPIC_DENIED), partial(check.topic, Operation.READ), call)


def _committed(error: ErrorCode) -> Parts:
    def denied(topic: Any) -> txn_offset_commit_response.TxnOffsetCommitResponseTopic:
        return txn_offset_commit_response.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                txn_offset_commit_response.TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error
                )
                for each in topic.partitions
            ],
        )

    response = txn_offset_commit_response.TxnOffsetCommitResponse
    return Parts("topics", "name", "topics", response, denied)


def write_txn_markers(check: Check, request: Any, call: Call) -> Any:
    """CLUSTER_ACTION."""
    if check.cluster(Operation.CLUSTER_ACTION):
        return call(request)
    return write_txn_markers_response.WriteTxnMarkersResponse(
        markers=[
            write_txn_markers_response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[_unmarked(topic) for topic in marker.topics],
            )
            for marker in request.markers
        ]
    )


def _unmarked(topic: Any) -> write_txn_markers_response.WritableTxnMarkerTopicResult:
    return write_txn_markers_response.WritableTxnMarkerTopicResult(
        name=topic.name,
        partitions=[
            write_txn_markers_response.WritableTxnMarkerPartitionResult(
                partition_index=number, error_code=_CLUSTER_DENIED
            )
            for number in topic.partition_indexes
        ],
    )


def describe_transactions(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each transactional id; topics without DESCRIBE are left out."""

    def denied(name: str) -> describe_transactions_response.TransactionState:
        return describe_transactions_response.TransactionState(
            transactional_id=name, error_code=_DENIED
        )

    def visible(answer: Any) -> Any:
        for state in answer.transaction_states:
            filtered(state, "topics", lambda row: check.topic(Operation.DESCRIBE, row.topic))
        return answer

    response = describe_transactions_response.DescribeTransactionsResponse
    parts = Parts("transactional_ids", "", "transaction_states", response, denied)
    may = partial(check.transactional_id, Operation.DESCRIBE)
    return then(in_parts(request, parts, may, call), visible)


def list_transactions(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each transactional id that is listed."""
    return then(
        call(request),
        lambda answer: filtered(
            answer,
            "transaction_states",
            lambda row: check.transactional_id(Operation.DESCRIBE, row.transactional_id),
        ),
    )
