"""A running cluster against clients that say odd things, and a controller that says them late."""

import asyncio
import random
import struct
from typing import Any

import pytest

from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tests.broker_impl import odd_requests

API_VERSIONS = struct.pack(">hhih", 18, 0, 2, -1)


class OddClient:
    """Sends one request after the other; connects again when it is sent away."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, key: int, version: int, body: bytes) -> None:
        """One request, and one more whose answer tells that the first is through."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        header = struct.pack(">hhih", key, version, 1, -1)
        if odd_requests.is_flexible(key, version):
            header += b"\0"
        for frame in (header + body, API_VERSIONS):
            writer.write(struct.pack(">i", len(frame)) + frame)
        try:
            async with asyncio.timeout(10):
                number = 1
                while number != 2:
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    number = int.from_bytes((await reader.readexactly(size))[:4], "big")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def create(cluster: Any, name: str, partitions: int, replicas: int) -> None:
    brokers = [running.broker for running in cluster.brokers.values()]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)],
        timeout_ms=5000,
    )
    answer = await cluster.ask(brokers[0].view.controller_id, request, 5)
    assert [row.error_code for row in answer.topics] == [0], answer
    await cluster.until(lambda: all(name in broker.view.topics for broker in brokers))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_odd_values_harm_nobody(
    three: Any, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Well-formed requests with any values are answered or sent away; nothing is left behind.

    No handler fails by surprise, no broker ends, no request stays parked, no byte accounted for.
    """
    await create(three, "t", 2, 3)
    await create(three, "u", 1, 1)
    rng = random.Random(seed)
    clients = [OddClient(running.port) for running in three.brokers.values()]

    async def chat(client: OddClient, requests: list[tuple[int, int, bytes]]) -> None:
        for key, version, body in requests:
            await client.send(key, version, body)
        client.close()

    await asyncio.gather(
        *(chat(client, [odd_requests.request(rng) for _ in range(300)]) for client in clients)
    )
    brokers = [running.broker for running in three.brokers.values()]
    followers = len(brokers) - 1
    await three.until(lambda: all(len(b.waiting) <= followers for b in brokers))
    assert [b._failure for b in brokers] == [None, None, None]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    await three.until(lambda: all(b._server.bounds.request_bytes == 0 for b in brokers))
