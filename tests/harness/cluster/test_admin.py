"""Admin requests to the controller, and the meaning of its answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire.framing import decode_request_header, encode_response
from broker_impl.wire.messages import alter_partition_reassignments_response as altered
from broker_impl.wire.messages import elect_leaders_response as elected
from broker_impl.wire.messages import request_module
from harness.cluster import admin
from harness.cluster.address import Address
from harness.cluster.ports import HOST


class FakeController:
    """A controller that answers one request per connection with `answer`.

    If `answer` is None, it closes the connection.
    """

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: Callable[[], Any] | None = None
        self.address = Address(HOST, 0)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        header, body = decode_request_header(memoryview(await reader.readexactly(size)))
        key, version = header.api_key, header.api_version
        self.asked.append(request_module(key).decode(body, version))
        if self.answer is not None:
            writer.writelines(encode_response(key, version, header.correlation_id, self.answer()))
        writer.close()


@pytest.fixture
async def controller() -> AsyncIterator[FakeController]:
    fake = FakeController()
    server = await asyncio.start_server(fake.connected, HOST, 0)
    fake.address = Address(HOST, server.sockets[0].getsockname()[1])
    yield fake
    server.close()


async def test_partitions_move_or_are_cancelled(controller: FakeController) -> None:
    """Each partition has its own result; a broker that is not the controller gives all the same."""
    rows = [
        altered.ReassignablePartitionResponse(0, ErrorCode.NONE, None),
        altered.ReassignablePartitionResponse(3, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    ]
    topics = [altered.ReassignableTopicResponse("a-b", rows)]
    response = altered.AlterPartitionReassignmentsResponse(responses=topics)
    controller.answer = lambda: altered.encode(response, 0)
    told = await admin.reassign(controller.address, {"a-b-0": [2, 1], "a-b-3": None})
    assert told == {"a-b-0": "NONE", "a-b-3": "NO_REASSIGNMENT_IN_PROGRESS"}
    [topic] = controller.asked[0].topics
    assert topic.name == "a-b"
    assert [(row.partition_index, row.replicas) for row in topic.partitions] == [
        (0, [2, 1]),
        (3, None),
    ]
    refusal = altered.AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    controller.answer = lambda: altered.encode(refusal, 0)
    assert await admin.reassign(controller.address, {"x-0": [1]}) == {"x-0": "NOT_CONTROLLER"}


async def test_preferred_leaders_are_elected(controller: FakeController) -> None:
    """Only the named partitions get a preferred election, never an unclean one."""
    rows = [
        elected.PartitionResult(0, ErrorCode.NONE, None),
        elected.PartitionResult(1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, None),
    ]
    results = [elected.ReplicaElectionResult("x", rows)]
    response = elected.ElectLeadersResponse(replica_election_results=results)
    controller.answer = lambda: elected.encode(response, 1)
    told = await admin.elect_preferred(controller.address, ["x-0", "x-1"])
    assert told == {"x-0": "NONE", "x-1": "PREFERRED_LEADER_NOT_AVAILABLE"}
    assert controller.asked[0].election_type == 0
    refusal = elected.ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
    controller.answer = lambda: elected.encode(refusal, 1)
    assert await admin.elect_preferred(controller.address, ["x-0"]) == {"x-0": "NOT_CONTROLLER"}


async def test_without_an_answer_nothing_is_told(controller: FakeController) -> None:
    """Without an answer it is unknown what the controller did, and no result is returned."""
    assert await admin.reassign(controller.address, {"x-0": None}) == {}
    assert await admin.elect_preferred(controller.address, ["x-0"]) == {}
