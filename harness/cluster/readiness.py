"""Ready means: a controller is elected, and a replicated topic can be written.

Both are tried with our own wire, past the mesh, so that nothing of the workloads' clients is warmed
up or put to sleep by it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from broker_impl.errors import ErrorCode, WireError
from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import request_module, response_module
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from harness.cluster.address import Address
from harness.cluster.sight import Sight, Unseen
from harness.cluster.waiting import until
from model.roles import NodeId

TOPIC = "faultline-ready"
ASK_TIMEOUT_S = 5.0

_CREATE_TOPICS = (19, 4)
_PRODUCE = (0, 7)
_CORRELATION_ID = 1


async def until_writable(view: Sight, brokers: Mapping[NodeId, Address]) -> None:
    """Wait until every broker is registered, one controls, and a record is on all of them.

    ``brokers``: where the client listener of each is, past the mesh. Never ends if the cluster
    never gets there; the caller has the clock.
    """
    await until(lambda: _created(view, brokers))
    await until(lambda: _written(view, brokers))


async def _created(view: Sight, brokers: Mapping[NodeId, Address]) -> bool:
    try:
        controller = await view.controller()
        if controller is None or len(await view.live()) < len(brokers):
            return False
    except Unseen:
        return False
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=min(3, len(brokers)))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=2000)
    answer = await _ask(brokers[controller], _CREATE_TOPICS, request)
    made = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return answer is not None and answer.topics[0].error_code in made


async def _written(view: Sight, brokers: Mapping[NodeId, Address]) -> bool:
    try:
        partition = await view.partition(f"{TOPIC}-0")
    except Unseen:
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
    answer = await _ask(brokers[partition.leader], _PRODUCE, request)
    if answer is None:
        return False
    error: int = answer.responses[0].partition_responses[0].error_code
    return error == ErrorCode.NONE


async def _ask(broker: Address, api: tuple[int, int], request: Any) -> Any | None:
    """The answer to one request on a connection of its own; ``None`` for none."""
    key, version = api
    header = RequestHeader(key, version, _CORRELATION_ID, "faultline")
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*broker)
            try:
                writer.writelines(
                    encode_request(header, request_module(key).encode(request, version))
                )
                size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                frame = memoryview(await reader.readexactly(size))
            finally:
                writer.close()
        _, body = decode_response(frame, key, version)
        return response_module(key).decode(body, version)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, WireError):
        return None
