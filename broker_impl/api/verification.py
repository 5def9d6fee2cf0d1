"""Verifies that a transaction is open before its first append in a partition (KIP-890, part 1)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_impl.api.services import Services
from broker_impl.errors import ErrorCode, WireError
from broker_impl.replica.replicas import Replicas
from broker_impl.wire import batch
from broker_impl.wire.messages.produce_request import ProduceRequest
from broker_impl.wire.types import Epoch, TopicPartition

_TO_PRODUCERS: Final = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_ENOUGH_REPLICAS,
}


class Begun(NamedTuple):
    """A transaction that a request would begin in a partition."""

    tp: TopicPartition
    producer_id: int
    producer_epoch: Epoch
    guard: int
    """The guard that the partition's log issued before the verification."""


def to_producers(error: ErrorCode) -> ErrorCode:
    """The error to return to producers: one that they know and retry (KAFKA-15459)."""
    return _TO_PRODUCERS.get(error, error)


def begun(replicas: Replicas, request: ProduceRequest) -> list[Begun]:
    """Return the transactions of this request that must be verified.

    Records that cannot be parsed are skipped here; the append refuses them.
    """
    found = []
    for topic in request.topic_data:
        for partition in topic.partition_data:
            tp = TopicPartition(topic.name, partition.index)
            if partition.records is None:
                continue
            assert isinstance(partition.records, memoryview), "records are decoded as a memoryview"
            try:
                header = batch.parse_header(partition.records)
            except WireError:
                continue
            if header.is_transactional and header.producer_id >= 0:
                guard = replicas.guard(tp, header.producer_id)
                if guard is not None:
                    found.append(Begun(tp, header.producer_id, header.producer_epoch, guard))
    return found


async def refusals(
    services: Services, transactional_id: str, begun: list[Begun]
) -> Mapping[TopicPartition, ErrorCode]:
    """Verify these transactions; return each one's error for the producer, NONE if it may begin."""
    asked: dict[tuple[int, Epoch], list[TopicPartition]] = {}
    for each in begun:
        asked.setdefault((each.producer_id, each.producer_epoch), []).append(each.tp)
    errors: dict[TopicPartition, ErrorCode] = {}
    for (producer_id, producer_epoch), partitions in asked.items():
        answer = await services.transactions.verify(
            transactional_id, producer_id, producer_epoch, tuple(partitions)
        )
        errors.update((tp, to_producers(error)) for tp, error in answer.items())
    return errors
