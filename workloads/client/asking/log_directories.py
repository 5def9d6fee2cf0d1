"""Orders that move replicas between the data directories of a broker (KIP-113)."""

import random
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Int64, Schema, String

from workloads.client.asking.requests import Place

_TOPICS: Final = Array(("topic", String("utf-8")), ("partitions", Array(Int32)))
_LISTED: Final = Array(
    ("partition", Int32), ("size", Int64), ("offset_lag", Int64), ("is_future", Boolean)
)


class _DescribeResponse(Response):  # type: ignore[misc]
    API_KEY = 35
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "directories",
            Array(
                ("error_code", Int16),
                ("path", String("utf-8")),
                ("topics", Array(("topic", String("utf-8")), ("partitions", _LISTED))),
            ),
        ),
    )


class _Describe(RequestStruct):  # type: ignore[misc]
    API_KEY = 35
    API_VERSION = 1
    RESPONSE_TYPE = _DescribeResponse
    SCHEMA = Schema(("topics", _TOPICS))


class DescribeRequest(Request[_Describe]):  # type: ignore[misc]
    """Asks where the replica of a partition is."""

    API_KEY = 35

    def __init__(self, place: Place) -> None:
        self._topics = [(place.topic, [place.partition])]

    def build(self, request_struct_class: type[_Describe]) -> _Describe:
        return request_struct_class(self._topics)


class _AlterResponse(Response):  # type: ignore[misc]
    API_KEY = 34
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("error_code", Int16))),
            ),
        ),
    )


class _Alter(RequestStruct):  # type: ignore[misc]
    API_KEY = 34
    API_VERSION = 1
    RESPONSE_TYPE = _AlterResponse
    SCHEMA = Schema(("directories", Array(("path", String("utf-8")), ("topics", _TOPICS))))


class AlterRequest(Request[_Alter]):  # type: ignore[misc]
    """Orders a broker to move the replica of a partition."""

    API_KEY = 34

    def __init__(self, place: Place, path: str) -> None:
        self._directories = [(path, [(place.topic, [place.partition])])]

    def build(self, request_struct_class: type[_Alter]) -> _Alter:
        return request_struct_class(self._directories)


class LogDirectories:
    """Moves replicas; ``ask`` asks one broker where its replica is, and names a directory."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random) -> None:
        self._client = client
        self._rng = rng

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Order the leader, or any broker, to move its replica to any of its directories."""
        broker = self._rng.choice([leader, self._rng.choice(brokers)])
        described: Any = await self._client.send(broker, DescribeRequest(place))
        where = {path: topics for _, path, topics in described.directories}
        path = self._rng.choice(sorted(where))
        answer: Any = await self._client.send(broker, AlterRequest(place, path))
        ((_, ((_, code),)),) = answer.topics
        here = [
            f"{name}{'*' if is_future else ''}"
            for name, topics in where.items()
            for _, partitions in topics
            for _, _, _, is_future in partitions
        ]
        return f"broker {broker}: {' '.join(here)} to {path}: {for_code(code).__name__}"
