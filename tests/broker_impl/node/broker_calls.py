"""Requests to the brokers of a cluster in one process, as clients send them."""

from collections.abc import Mapping, Sequence
from typing import Any

from broker_impl.wire import batch
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateableTopicConfig,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)


async def create(
    cluster: Any,
    name: str = "t",
    partitions: int = 1,
    replicas: int = 3,
    assignment: Sequence[int] = (),
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic at the controller, and wait until every broker knows it."""
    brokers = [running.broker for running in cluster.brokers.values() if running.broker]
    controller = brokers[0].view.controller_id
    answer = await cluster.ask(
        controller,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1 if assignment else partitions,
                    replication_factor=-1 if assignment else replicas,
                    assignments=[CreatableReplicaAssignment(broker_ids=list(assignment))]
                    if assignment
                    else [],
                    configs=[
                        CreateableTopicConfig(name=key, value=value)
                        for key, value in (config or {}).items()
                    ],
                )
            ],
            timeout_ms=5000,
        ),
        5,
    )
    assert [row.error_code for row in answer.topics] == [0], answer
    await cluster.until(lambda: all(name in broker.view.topics for broker in brokers))


def leader(cluster: Any, tp: TopicPartition = TP) -> int:
    for running in cluster.brokers.values():
        if running.broker:
            return int(running.broker.view.partition(tp).leader)
    raise AssertionError("no broker runs")


async def produce(
    cluster: Any,
    number: int,
    *values: bytes,
    acks: int = -1,
    timeout_ms: int = 5000,
    timeout_s: float = 10,
) -> Any:
    """Send one batch to a broker, and return the partition's row of the response."""
    records = batch.encode_batch([batch.Record(b"k", value, 1) for value in values])
    answer = await cluster.ask(
        number,
        ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=TP.topic,
                    partition_data=[PartitionProduceData(index=TP.partition, records=records)],
                )
            ],
        ),
        9,
        timeout_s=timeout_s,
    )
    return answer.responses[0].partition_responses[0]


async def consume(
    cluster: Any, number: int, offset: int = 0, max_wait_ms: int = 100
) -> list[bytes]:
    """The values from an offset on, as a consumer reads them from this broker."""
    answer = await cluster.ask(
        number,
        FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=TP.topic,
                    partitions=[
                        FetchPartition(
                            partition=TP.partition,
                            fetch_offset=offset,
                            partition_max_bytes=1_000_000,
                        )
                    ],
                )
            ],
        ),
        11,
    )
    row = answer.responses[0].partitions[0]
    assert row.error_code == 0, row
    return [record.value or b"" for record in batch.records(row.records)]


def settings_of(answer: Any) -> dict[str, str]:
    return {row.name: row.value for row in answer.results[0].configs}


async def describe(cluster: Any, number: int, topic: str = "t") -> Any:
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    return await cluster.ask(number, DescribeConfigsRequest(resources=[resource]), 4)


async def delete(cluster: Any, topic: str = "t") -> None:
    brokers = [running.broker for running in cluster.brokers.values() if running.broker]
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000)
    answer = await cluster.ask(brokers[0].view.controller_id, request, 5)
    assert [row.error_code for row in answer.responses] == [0]
    await cluster.until(lambda: not any(topic in broker.view.topics for broker in brokers))


def leader_by(cluster: Any, other_than: int) -> int:
    """The leader in the metadata of another broker."""
    witness = next(number for number in cluster.brokers if number != other_than)
    return int(cluster.brokers[witness].broker.view.partition(TP).leader)
