"""Waits until a cluster is ready: a controller is elected, and a replicated topic can be written.

Both are tried with the project's own wire code, past the mesh, so that the workloads' clients are
neither warmed up nor put into a back-off.
"""

from collections.abc import Mapping

from broker_impl.errors import ErrorCode
from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from harness.cluster.address import Address
from harness.cluster.observe.kafka_request import ask
from harness.cluster.observe.metadata_view import MetadataView, ViewUnavailable
from harness.cluster.polling import until
from model.roles import NodeId

TOPIC = "faultline-ready"

_CREATE_TOPICS = (19, 4)
_PRODUCE = (0, 7)


async def until_writable(view: MetadataView, brokers: Mapping[NodeId, Address]) -> None:
    """Wait until every broker is registered, one is the controller, and a record is on all of them.

    ``brokers`` are their client listeners, past the mesh. If the cluster never becomes ready, this
    never ends; the caller limits the time.
    """
    await until(lambda: _created(view, brokers))
    await until(lambda: _written(view, brokers))


async def _created(view: MetadataView, brokers: Mapping[NodeId, Address]) -> bool:
    try:
        controller = await view.controller()
        if controller is None or len(await view.live()) < len(brokers):
            return False
    except ViewUnavailable:
        return False
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=min(3, len(brokers)))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=2000)
    answer = await ask(brokers[controller], _CREATE_TOPICS, request)
    made = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return answer is not None and answer.topics[0].error_code in made


async def _written(view: MetadataView, brokers: Mapping[NodeId, Address]) -> bool:
    try:
        partition = await view.partition(f"{TOPIC}-0")
    except ViewUnavailable:
        return False
    if partition is None or partition.leader is None or not partition.is_whole:
        return False
    batch = encode_batch([Record(value=b"ready")])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=2000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
            )
        ],
    )
    answer = await ask(brokers[partition.leader], _PRODUCE, request)
    if answer is None:
        return False
    error: int = answer.responses[0].partition_responses[0].error_code
    return error == ErrorCode.NONE
