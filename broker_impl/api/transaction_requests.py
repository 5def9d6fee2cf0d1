"""The requests of transactional producers and of their administration.

Served: AddPartitionsToTxn (API 24) v0-v4, AddOffsetsToTxn (25) v0-v3, EndTxn (26) v0-v3,
DescribeTransactions (65) v0, ListTransactions (66) v0. This is the protocol of Kafka 2.8 (TV1): a
producer keeps its epoch from one transaction to the next. AddPartitionsToTxn v4 is sent between
brokers, and only verifies that a transaction is open (KIP-890, ADR 14); up to v3, it waits a moment
for the previous transaction to complete. Clients know PRODUCER_FENCED since v2 of the first three
requests.

Left out: TV2 (EndTxn v5: a new epoch for each transaction), two-phase commit (KIP-939).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.controller import topics as topic_rules
from broker_impl.coordinator.records import TOPIC as OFFSETS
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from broker_impl.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from broker_impl.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from broker_impl.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from broker_impl.wire.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
)
from broker_impl.wire.messages.describe_transactions_response import (
    TransactionState as DescribedTransaction,
)
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.end_txn_response import EndTxnResponse
from broker_impl.wire.messages.list_transactions_request import ListTransactionsRequest
from broker_impl.wire.messages.list_transactions_response import (
    ListTransactionsResponse,
)
from broker_impl.wire.messages.list_transactions_response import (
    TransactionState as ListedTransaction,
)
from broker_impl.wire.types import TopicPartition

_FENCED_SINCE: Final = 2
_BATCHES_SINCE: Final = 4


def _error_for_version(context: RequestContext, error: ErrorCode) -> ErrorCode:
    """Map PRODUCER_FENCED to INVALID_PRODUCER_EPOCH for versions before KIP-588."""
    if error is ErrorCode.PRODUCER_FENCED and context.version < _FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


@api(24, range(5), private_from=_BATCHES_SINCE)
async def add_partitions_to_txn(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Add all of the partitions to the transaction, or none."""
    if context.version >= _BATCHES_SINCE:
        return _verify(context, request)
    topics = request.v3_and_below_topics
    partitions = _partitions(topics)
    refused = {tp: error for tp in partitions if (error := _refusal(context, tp))}
    if refused:
        errors = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    else:
        error = await context.services.transactions.add_partitions(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            partitions,
        )
        errors = dict.fromkeys(partitions, _error_for_version(context, error))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, errors))


def _refusal(context: RequestContext, tp: TopicPartition) -> ErrorCode:
    """Return why a producer may not write there; only coordinators write to internal topics."""
    if tp.topic in topic_rules.INTERNAL:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.services.view.partition(tp) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _verify(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    results = []
    for row in request.transactions:
        partitions = _partitions(row.topics)
        errors: Mapping[TopicPartition, ErrorCode]
        if row.verify_only:
            errors = context.services.transactions.verify_here(
                row.transactional_id, row.producer_id, row.producer_epoch, partitions
            )
        else:
            errors = dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=row.transactional_id, topic_results=_results(row.topics, errors)
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.name, number) for topic in topics for number in topic.partitions
    )


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Mapping[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=number,
                    partition_error_code=errors[TopicPartition(topic.name, number)],
                )
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]


@api(25, range(4))
async def add_offsets_to_txn(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Add the partition that stores a group's offsets to the transaction."""
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    known = context.services.view.topics.get(OFFSETS)
    if not known:
        context.services.create_in_background([OFFSETS])
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = context.services.groups.partition_of(request.group_id)
    error = await context.services.transactions.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, (partition,)
    )
    return AddOffsetsToTxnResponse(error_code=_error_for_version(context, error))


@api(26, range(4))
async def end_txn(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Commit or abort; answered once the decision is stored, before the markers are written."""
    error = await context.services.transactions.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        is_commit=request.committed,
    )
    return EndTxnResponse(error_code=_error_for_version(context, error))


@api(65, range(1))
def describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Return the coordinator's state of each transactional id (KIP-664)."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(context, name) for name in request.transactional_ids]
    )


def _describe(context: RequestContext, transactional_id: str) -> DescribedTransaction:
    found = context.services.transactions.describe(transactional_id)
    if isinstance(found, ErrorCode):
        return DescribedTransaction(transactional_id=transactional_id, error_code=found)
    topics: dict[str, list[int]] = {}
    for tp in sorted(found.partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[TopicData(*topic) for topic in topics.items()],
    )


@api(66, range(1))
def list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Return the transactional ids that this broker coordinates and that the filters accept."""
    transactions = context.services.transactions
    if transactions.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    titles = {state.title for state in TransactionState}
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in titles],
        transaction_states=[
            ListedTransaction(
                transactional_id=name,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.title,
            )
            for name, metadata in transactions.all()
            if _is_asked_for(metadata, request)
        ],
    )


def _is_asked_for(metadata: Metadata, request: ListTransactionsRequest) -> bool:
    return (not request.state_filters or metadata.state.title in request.state_filters) and (
        not request.producer_id_filters or metadata.producer_id in request.producer_id_filters
    )
