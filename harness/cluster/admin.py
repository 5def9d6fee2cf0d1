"""Requests of an operator to the controller: reassignments and preferred leader elections."""

from collections.abc import Iterable, Mapping, Sequence

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from harness.cluster.address import Address
from harness.cluster.observe.kafka_request import ask

TIMEOUT_S = 2.0
_REASSIGN = (45, 0)
_ELECT = (43, 1)
_PREFERRED = 0


async def reassign(
    controller: Address, wanted: Mapping[str, Sequence[int] | None]
) -> dict[str, str]:
    """Move partitions (``topic-partition``) to these brokers; ``None`` cancels a move.

    Return the name of an error for each partition; empty if the controller does not answer.
    """
    topics: dict[str, ReassignableTopic] = {}
    for key, replicas in wanted.items():
        name, number = _parts(key)
        topic = topics.setdefault(name, ReassignableTopic(name, []))
        topic.partitions.append(
            ReassignablePartition(number, None if replicas is None else list(replicas))
        )
    request = AlterPartitionReassignmentsRequest(_timeout_ms(), list(topics.values()))
    answer = await ask(controller, _REASSIGN, request, TIMEOUT_S)
    if answer is None:
        return {}
    if answer.error_code:
        return dict.fromkeys(wanted, ErrorCode(answer.error_code).name)
    return {
        f"{topic.name}-{row.partition_index}": ErrorCode(row.error_code).name
        for topic in answer.responses
        for row in topic.partitions
    }


async def elect_preferred(controller: Address, keys: Iterable[str]) -> dict[str, str]:
    """Elect the preferred leaders of these partitions; the result is that of :func:`reassign`."""
    wanted = list(keys)
    topics: dict[str, TopicPartitions] = {}
    for key in wanted:
        name, number = _parts(key)
        topics.setdefault(name, TopicPartitions(name, [])).partitions.append(number)
    request = ElectLeadersRequest(_PREFERRED, list(topics.values()), _timeout_ms())
    answer = await ask(controller, _ELECT, request, TIMEOUT_S)
    if answer is None:
        return {}
    if answer.error_code:
        return dict.fromkeys(wanted, ErrorCode(answer.error_code).name)
    return {
        f"{topic.topic}-{row.partition_id}": ErrorCode(row.error_code).name
        for topic in answer.replica_election_results
        for row in topic.partition_result
    }


def _parts(key: str) -> tuple[str, int]:
    topic, _, number = key.rpartition("-")
    return topic, int(number)


def _timeout_ms() -> int:
    return int(TIMEOUT_S * 1000)
