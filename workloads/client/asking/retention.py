"""Topics from which brokers delete old segments, by size and by time.

Each process has one of both kinds, with small segments, and writes to them now and then. A segment
of the latter gets records for longer than the topic keeps them. Sometimes the process deletes all
records (KIP-107), writes some more, which often have the segment of deleted ones, asks for the
first record after a time, and moves a replica to another data directory (KIP-113).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code

from workloads.client.asking.own_topics import Administrator, append
from workloads.client.asking.requests import UNKNOWN_EPOCH, ListOffsetsRequest, Place
from workloads.client.asking.txn_requests import batch

SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "by-size": {"segment.bytes": "300", "retention.bytes": "600", "retention.ms": "-1"},
    "by-time": {"segment.bytes": "2000", "retention.ms": "2000"},
}
"""The settings of the topics, by the end of their names."""
WRITES_MAX: Final = 12
RECORDS_MAX: Final = 6
DELETION_EVERY: Final = 3
"""Records are deleted after a multiple of this number of writes."""
PAUSE_S: Final = 0.3
"""The time between two writes, at most."""

Move = Callable[[Place, int, list[int]], Awaitable[str]]
"""Moves a replica of a partition, with its leader and all known brokers."""


class Retention:
    """The topics of one process; ``ask`` writes to one, and returns what happened as text."""

    def __init__(
        self,
        client: AIOKafkaClient,
        rng: random.Random,
        name: str,
        admin: Administrator,
        move: Move,
    ) -> None:
        self._client = client
        self._move = move
        self._rng = rng
        self._name = name
        self._admin = admin
        self._existing: set[str] = set()
        """The topics that exist, by kind; used for membership tests only."""
        self._found_ms = 0
        """The time of the record that was found last; it may have been deleted since."""

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Write to one of the topics, with pauses; create it first."""
        kind = self._rng.choice(list(SETTINGS))
        topic = f"{self._name}-{kind}"
        if kind not in self._existing:
            outcome, error = await self._admin.create(topic, settings=SETTINGS[kind])
            if outcome != "ok":
                return f"create {topic}: {error}"
            self._existing.add(kind)
        said, writes = [], self._rng.randint(1, WRITES_MAX)
        for _ in range(writes):
            said.append(await self._write(Place(topic, 0)))
            await asyncio.sleep(self._rng.uniform(0.0, PAUSE_S))
        if writes % DELETION_EVERY == 0:
            said += await self._delete_and_move(Place(topic, 0), brokers)
        return f"write {topic}: {', '.join(said)}"

    async def _delete_and_move(self, place: Place, brokers: list[int]) -> list[str]:
        outcome, _, error = await self._admin.delete_records(place)
        said = [f"delete {error or outcome}", await self._write(place)]
        leader = self._client.cluster.leader_for_partition(TopicPartition(*place))
        if leader in brokers:
            said += [await self._find(place, leader), await self._move(place, leader, brokers)]
        return said

    async def _find(self, place: Place, leader: int) -> str:
        """Ask for the first record from a time on, at which there may have been deleted ones."""
        asked_ms = self._rng.choice((0, self._found_ms))
        request = ListOffsetsRequest(place, asked_ms, 0, UNKNOWN_EPOCH)
        answer = await self._client.send(leader, request)
        (_, ((_, code, found_ms, offset, *_),), *_) = answer.topics[0]
        self._found_ms = max(0, found_ms)
        return f"find {offset}: {for_code(code).__name__}"

    async def _write(self, place: Place) -> str:
        data = batch(-1, -1, -1, self._rng.randint(1, RECORDS_MAX), transactional=False)
        [code] = await append(self._client, place, {place.partition: data})
        return str(for_code(code).__name__)
