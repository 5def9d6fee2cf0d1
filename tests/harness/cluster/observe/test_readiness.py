"""A cluster is ready when a record is on every replica, and no earlier."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire.batch import check_crc, parse_header
from broker_impl.wire.framing import decode_request_header, encode_response
from broker_impl.wire.messages import create_topics_response as created
from broker_impl.wire.messages import produce_response as produced
from broker_impl.wire.messages import request_module
from harness.cluster.address import Address
from harness.cluster.observe import readiness
from harness.cluster.observe.metadata_view import Registration, ViewUnavailable
from harness.cluster.ports import HOST
from model.capabilities.control_plane import Partition
from model.roles import NodeId
from tests.harness.cluster.observe import fake_broker as scripted

A, B = "broker-1", "broker-2"


class FakeBroker:
    """A broker that creates topics and accepts records, after the errors it was set to return."""

    def __init__(self) -> None:
        self.port = 0
        self.create_errors: list[ErrorCode] = []
        self.produce_errors: list[ErrorCode] = []
        self.asked: list[Any] = []
        self.hangs_up = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        header, body = decode_request_header(memoryview(await reader.readexactly(size)))
        module = request_module(header.api_key)
        request = module.decode(body, header.api_version)
        self.asked.append(request)
        if self.hangs_up:
            self.hangs_up -= 1
        else:
            answer = (self._create if header.api_key == 19 else self._produce)(request)
            parts = encode_response(
                header.api_key, header.api_version, header.correlation_id, answer
            )
            writer.writelines(parts)
        writer.close()

    def _create(self, request: Any) -> Any:
        error = self.create_errors.pop(0) if self.create_errors else ErrorCode.NONE
        topic = created.CreatableTopicResult(name=request.topics[0].name, error_code=error)
        return created.encode(created.CreateTopicsResponse(topics=[topic]), 4)

    def _produce(self, request: Any) -> Any:
        error = self.produce_errors.pop(0) if self.produce_errors else ErrorCode.NONE
        partition = produced.PartitionProduceResponse(index=0, error_code=error)
        topic = produced.TopicProduceResponse(
            name=request.topic_data[0].name, partition_responses=[partition]
        )
        return produced.encode(produced.ProduceResponse(responses=[topic]), 7)


class FakeView:
    """A view of a cluster that advances by one state each time it is read."""

    def __init__(self, *views: tuple[NodeId | None, int, Partition | None] | None) -> None:
        self._views = list(views)

    @property
    def _now(self) -> tuple[NodeId | None, int, Partition | None]:
        now = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        if now is None:
            raise ViewUnavailable("not now")
        return now

    async def close(self) -> None:
        self._views.clear()

    async def controller(self) -> NodeId | None:
        return self._now[0]

    async def live(self) -> tuple[NodeId, ...]:
        return (A, B)[: self._now[1]]

    async def registration(self, broker: NodeId) -> Registration | None:
        return Registration(epoch=1, session_id=1) if broker in await self.live() else None

    async def partition(self, key: str) -> Partition | None:
        assert key == "faultline-ready-0"
        return self._now[2]

    async def partitions(self) -> tuple[Partition, ...]:
        return ()


def partition(leader: NodeId | None, *isr: NodeId) -> Partition:
    return Partition("faultline-ready-0", (A, B), leader, 0, isr)


WHOLE = partition(B, A, B)


@pytest.fixture
async def brokers() -> AsyncIterator[dict[NodeId, FakeBroker]]:
    made = {A: FakeBroker(), B: FakeBroker()}
    for broker in made.values():
        await broker.start()
    yield made
    for broker in made.values():
        broker.close()


async def ready(fake_view: FakeView, brokers: dict[NodeId, FakeBroker]) -> None:
    async with asyncio.timeout(5):
        await readiness.until_writable(
            fake_view, {name: Address(HOST, b.port) for name, b in brokers.items()}
        )


async def test_record_goes_to_the_leader(brokers: dict[NodeId, FakeBroker]) -> None:
    """The topic is created at the controller, and a valid batch is written to its leader."""
    await ready(FakeView((A, 2, WHOLE)), brokers)
    [create] = brokers[A].asked
    [topic] = create.topics
    assert (topic.num_partitions, topic.replication_factor) == (1, 2)
    [produce] = brokers[B].asked
    assert produce.acks == -1
    batch = bytes(produce.topic_data[0].partition_data[0].records)
    header = parse_header(batch)
    assert header.count == 1
    assert check_crc(batch, 0, header)


async def test_waits_for_all_of_it(brokers: dict[NodeId, FakeBroker]) -> None:
    """Readiness waits for a controller, all brokers, a leader, a full ISR and a readable view."""
    await ready(
        FakeView(
            *(None, (None, 0, None), (A, 1, None), (A, 1, None), (A, 2, None), (A, 2, None)),
            *(None, (A, 2, None), (A, 2, partition(None, A, B)), (A, 2, partition(B, B))),
            (A, 2, WHOLE),
        ),
        brokers,
    )
    assert len(brokers[A].asked) == 1
    assert len(brokers[B].asked) == 1


async def test_tries_again(brokers: dict[NodeId, FakeBroker]) -> None:
    """Refused requests and lost connections are retried; an existing topic is accepted."""
    brokers[A].create_errors = [ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_ALREADY_EXISTS]
    brokers[A].hangs_up = 1
    brokers[B].produce_errors = [ErrorCode.NOT_ENOUGH_REPLICAS]
    brokers[B].hangs_up = 1
    await ready(FakeView((A, 2, WHOLE)), brokers)
    assert len(brokers[A].asked) == 3
    assert len(brokers[B].asked) == 3


@pytest.mark.parametrize(
    ("create", "produce", "magic"),
    [
        (range(2), range(3), 1),  # 0.10.2
        (range(5), range(8), 2),  # 2.0
        (range(2, 8), range(14), 2),  # 4.1
    ],
)
async def test_any_release(create: range, produce: range, magic: int) -> None:
    """Versions are negotiated; releases before 0.11 receive a record of format 1."""

    def made(_: int, request: Any) -> created.CreateTopicsResponse:
        topic = created.CreatableTopicResult(name=request.topics[0].name)
        return created.CreateTopicsResponse(topics=[topic])

    def written(_: int, request: Any) -> produced.ProduceResponse:
        row = produced.PartitionProduceResponse(index=0)
        topic = produced.TopicProduceResponse(request.topic_data[0].name, [row])
        return produced.ProduceResponse(responses=[topic])

    broker = scripted.FakeBroker({19: create, 0: produce}, {19: made, 0: written})
    await broker.start()
    brokers = {A: broker.address, B: broker.address}
    async with asyncio.timeout(5):
        # A controller that is not a broker, as in KRaft: any broker takes the request.
        await readiness.until_writable_on_any_release(FakeView(("controller-9", 2, WHOLE)), brokers)
    broker.close()
    [(version, _)] = broker.asked_for(19)
    assert version == min(create.stop - 1, 7)
    [(_, request)] = broker.asked_for(0)
    records = bytes(request.topic_data[0].partition_data[0].records)
    assert records[16] == magic


def test_message_set_of_format_1() -> None:
    """A message set of format 1, byte by byte, with the CRC-32 of what follows it."""
    message = bytes.fromhex("01 00 0000000000000000 ffffffff 00000002 6869")
    encoded = readiness.message_set(b"hi")
    assert encoded[:12] == bytes.fromhex("0000000000000000 00000018")
    assert encoded[12:16] == zlib.crc32(message).to_bytes(4, "big")
    assert encoded[16:] == message
