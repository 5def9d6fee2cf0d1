"""Topics of an asking process: it creates and deletes them, and writes to their leaders."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest

from workloads.client import aio_admin
from workloads.client.asking.requests import Place
from workloads.client.outcome import Outcome

WRITE_MS: Final = 1000
"""How long a leader may wait for its followers, unless a process says otherwise."""

_COMMITTED: Final = -1
"""The offset in DeleteRecords that means the high watermark."""


class Administrator(NamedTuple):
    """Creates and deletes topics, and deletes records; returns outcomes and names of errors."""

    common: Mapping[str, Any]
    """The settings of the clients that it uses."""
    replicas: int
    """The number of replicas of each topic."""

    async def create(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> tuple[Outcome, str | None]:
        new = NewTopic(name, partitions, self.replicas, topic_configs=dict(settings or {}))
        return await aio_admin.create(self.common, new)

    async def delete(self, name: str) -> tuple[Outcome, str | None]:
        return await aio_admin.delete_topic(self.common, name)

    async def delete_records(self, place: Place) -> tuple[Outcome, int | None, str | None]:
        """Delete all committed records of a partition; return the low watermark, too."""
        return await aio_admin.delete_records(self.common, TopicPartition(*place), _COMMITTED)


async def append(
    client: AIOKafkaClient,
    place: Place,
    batches: Mapping[int, bytes],
    *,
    transactional_id: str | None = None,
    timeout_ms: int = WRITE_MS,
) -> list[int]:
    """Send batches in one request, with ``acks=all``, to the leader of ``place``.

    ``batches`` has the batch of each partition of its topic. Returns the error code of each.
    """
    await client._wait_on_metadata(place.topic)
    leader = client.cluster.leader_for_partition(TopicPartition(*place))
    topics = [(place.topic, list(batches.items()))]
    answer = await client.send(leader, ProduceRequest(transactional_id, -1, timeout_ms, topics))
    ((_, rows, *_),) = answer.topics
    return [code for _, code, *_ in rows]
