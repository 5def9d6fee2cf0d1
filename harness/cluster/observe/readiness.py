"""Waits until a cluster is ready: a controller is elected, and a replicated topic can be written.

Both are tried with the project's own wire code, past the mesh, so that the workloads' clients are
neither warmed up nor put into a back-off.
"""

import functools
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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
from harness.cluster.observe.negotiation import Negotiator
from harness.cluster.polling import until
from model.roles import NodeId

TOPIC = "faultline-ready"

_CREATE_TOPICS = (19, 4)
_PRODUCE = (0, 7)
_BATCHES_FROM = 3
"""The first version of Produce with batches of format 2 (KIP-98); before, a message set has 1."""
_MESSAGE_HEAD = struct.Struct(">bbqi")
"""Of a message of format 1: magic, attributes, timestamp, length of the key."""

Send = Callable[[Address, tuple[int, int], Callable[[int], Any]], Awaitable[Any | None]]
"""Sends a request to a broker: the API's key and usual version, and the request by version."""


async def until_writable(view: MetadataView, brokers: Mapping[NodeId, Address]) -> None:
    """Wait until every broker is registered, one is the controller, and a record is on all of them.

    ``brokers`` are their client listeners, past the mesh, of this project's brokers, whose versions
    are known. If the cluster never becomes ready, this never ends; the caller limits the time.
    """

    async def send(broker: Address, api: tuple[int, int], make: Callable[[int], Any]) -> Any | None:
        return await ask(broker, api, make(api[1]))

    await _until_writable(view, brokers, send, TOPIC)


async def until_writable_on_any_release(
    view: MetadataView, brokers: Mapping[NodeId, Address], topic: str = TOPIC
) -> None:
    """Wait as :func:`until_writable`, for a Kafka of any release from 0.10 on.

    ``topic`` is the topic that is created.
    """
    negotiator = Negotiator()

    async def send(broker: Address, api: tuple[int, int], make: Callable[[int], Any]) -> Any | None:
        return await negotiator.ask(broker, api[0], make)

    await _until_writable(view, brokers, send, topic)


async def _until_writable(
    view: MetadataView, brokers: Mapping[NodeId, Address], send: Send, topic: str
) -> None:
    await until(lambda: _created(view, brokers, send, topic))
    await until(lambda: _written(view, brokers, send, topic))


async def _created(
    view: MetadataView, brokers: Mapping[NodeId, Address], send: Send, name: str
) -> bool:
    try:
        controller = await view.controller()
        if controller is None or len(await view.live()) < len(brokers):
            return False
    except ViewUnavailable:
        return False
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=min(3, len(brokers)))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=2000)
    # A controller that is no broker is KRaft's, to which any broker forwards the request.
    at = brokers.get(controller) or next(iter(brokers.values()))
    answer = await send(at, _CREATE_TOPICS, lambda _: request)
    made = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return answer is not None and answer.topics[0].error_code in made


async def _written(
    view: MetadataView, brokers: Mapping[NodeId, Address], send: Send, topic: str
) -> bool:
    try:
        partition = await view.partition(f"{topic}-0")
    except ViewUnavailable:
        return False
    if partition is None or partition.leader is None or not partition.is_whole:
        return False
    request = functools.partial(_produce_request, topic)
    answer = await send(brokers[partition.leader], _PRODUCE, request)
    if answer is None:
        return False
    error: int = answer.responses[0].partition_responses[0].error_code
    return error == ErrorCode.NONE


def _produce_request(topic: str, version: int) -> ProduceRequest:
    value = b"ready"
    records = (
        encode_batch([Record(value=value)]) if version >= _BATCHES_FROM else message_set(value)
    )
    return ProduceRequest(
        acks=-1,
        timeout_ms=2000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )


def message_set(value: bytes) -> bytes:
    """Encode one record as a message set of format 1 (KIP-32), for releases before 0.11.

    It consists of an offset, which the broker assigns, a size, and the message, which begins with
    a CRC-32 of the rest. The message has no key, and its timestamp is the epoch.
    """
    rest = _MESSAGE_HEAD.pack(1, 0, 0, -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(rest)) + rest
    return struct.pack(">qi", 0, len(message)) + message
