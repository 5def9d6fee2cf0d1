"""Generates load with this project's codec on a blocking socket: a client with almost no cost."""

import itertools
import socket
import time
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

from bench.librdkafka import TIMEOUT_S, Failed
from broker_impl.wire import batch
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import response_module
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_FETCH_VERSION, _METADATA_VERSION, _PRODUCE_VERSION = 11, 5, 8
_FETCH_BYTES = 1_000_000


class Connection:
    """A connection on which several requests may be in flight."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count()
        self._buffer = bytearray(2 * _FETCH_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, message: Any, version: int) -> None:
        """Send a request."""
        module = import_module(type(message).__module__)
        header = RequestHeader(module.API_KEY, version, next(self._numbers), "bench")
        frame = encode_request(header, module.encode(message, version))
        self._socket.sendall(b"".join(frame))

    def receive(self, api_key: int, version: int) -> Any:
        """Return the response to the oldest request; its buffers are valid until the next call."""
        size = int.from_bytes(self._read(4), "big")
        _, body = decode_response(self._read(size), api_key, version)
        return response_module(api_key).decode(body, version)

    def request(self, message: Any, version: int) -> Any:
        """Send a request, and wait for the response."""
        self.send(message, version)
        return self.receive(import_module(type(message).__module__).API_KEY, version)

    def _read(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        filled = 0
        while filled < size:
            count = self._socket.recv_into(view[filled:])
            if not count:
                raise Failed("the broker closed the connection")
            filled += count
        return view


def leader(address: str, topic: str) -> str:
    """Return the address of the leader of partition 0."""
    with Connection(address) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        answer = connection.request(request, _METADATA_VERSION)
    where = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
    return where[answer.topics[0].partitions[0].leader_id]


def consume(address: str, topic: str, *, count: int) -> float:
    """Return the seconds to fetch this many records, of which only the batch headers are read.

    Two requests are always in flight, one in each half of the log, so that the broker need not wait
    until the client knows where its next fetch starts.
    """
    begun = time.perf_counter()
    with Connection(leader(address, topic)) as connection:
        under_way: deque[tuple[int, int]] = deque()  # first offset, end offset
        for start, stop in ((0, count // 2), (count // 2, count)):
            connection.send(_fetch(topic, start), _FETCH_VERSION)
            under_way.append((start, stop))
        while under_way:
            offset, stop = under_way.popleft()
            row = connection.receive(1, _FETCH_VERSION).responses[0].partitions[0]
            if row.error_code or not row.records:
                raise Failed(
                    f"the fetch at offset {offset} returned error {row.error_code} and no records"
                )
            at = 0
            while at + batch.HEADER_BYTES <= len(row.records):
                header = batch.parse_header(row.records, at)
                at += header.size
                if at > len(row.records):
                    break
                offset = header.next_offset
            if offset < stop:
                connection.send(_fetch(topic, offset), _FETCH_VERSION)
                under_way.append((offset, stop))
    return time.perf_counter() - begun


def _fetch(topic: str, offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def produce_alone(address: str, topic: str, *, value_bytes: int, count: int) -> Sequence[float]:
    """Return the seconds of each record with acks=all, sent after the one before is answered."""
    record = batch.Record(value=b"x" * value_bytes, timestamp_ms=int(time.time() * 1000))
    records = batch.encode_batch([record])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=int(TIMEOUT_S * 1000),
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    took = []
    with Connection(leader(address, topic)) as connection:
        for number in range(count):
            begun = time.perf_counter()
            answer = connection.request(request, _PRODUCE_VERSION)
            took.append(time.perf_counter() - begun)
            error = answer.responses[0].partition_responses[0].error_code
            if error:
                raise Failed(f"record {number} was rejected with error {error}")
    return took
