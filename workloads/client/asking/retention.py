"""Topics from which brokers delete old segments, by size and by time.

Each process has one of both kinds, with small segments, and writes to them now and then. A segment
of the latter gets records for longer than the topic keeps them.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.protocol.produce import ProduceRequest

from workloads.client import aio_admin
from workloads.client.asking.requests import Place
from workloads.client.asking.txn_requests import batch

SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "by-size": {"segment.bytes": "300", "retention.bytes": "600", "retention.ms": "-1"},
    "by-time": {"segment.bytes": "2000", "retention.ms": "2000"},
}
"""The settings of the topics, by the end of their names."""
WRITES_MAX: Final = 12
RECORDS_MAX: Final = 6
PAUSE_S: Final = 0.3
"""The time between two writes, at most."""


class Retention:
    """The topics of one process; ``ask`` writes to one, and returns what happened as text."""

    def __init__(
        self,
        client: AIOKafkaClient,
        rng: random.Random,
        name: str,
        common: Mapping[str, Any],
        replicas: int,
    ) -> None:
        self._client = client
        self._rng = rng
        self._name = name
        self._common = common
        self._replicas = replicas
        self._existing: set[str] = set()
        """The topics that exist, by kind; used for membership tests only."""

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Write to one of the topics, with pauses; create it first."""
        kind = self._rng.choice(list(SETTINGS))
        topic = f"{self._name}-{kind}"
        if kind not in self._existing:
            new = NewTopic(topic, 1, self._replicas, topic_configs=dict(SETTINGS[kind]))
            outcome, error = await aio_admin.create(self._common, new)
            if outcome != "ok":
                return f"create {topic}: {error}"
            self._existing.add(kind)
        await self._client._wait_on_metadata(topic)
        said = []
        for _ in range(self._rng.randint(1, WRITES_MAX)):
            said.append(await self._write(Place(topic, 0)))
            await asyncio.sleep(self._rng.uniform(0.0, PAUSE_S))
        return f"write {topic}: {', '.join(said)}"

    async def _write(self, place: Place) -> str:
        leader = self._client.cluster.leader_for_partition(TopicPartition(*place))
        data = batch(-1, -1, -1, self._rng.randint(1, RECORDS_MAX), transactional=False)
        request = ProduceRequest(None, -1, 1000, [(place.topic, [(place.partition, data)])])
        answer = await self._client.send(leader, request)
        ((_, ((_, code, *_),), *_),) = answer.topics
        return str(for_code(code).__name__)
