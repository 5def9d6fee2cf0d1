"""Reads the start and the ends of a partition from its leader.

aiokafka's consumer requests them under its own isolation level only.
"""

from typing import Any, Literal

from aiokafka import TopicPartition
from aiokafka.errors import LeaderNotAvailableError, NoError, for_code
from aiokafka.protocol.offset import OffsetRequest

Place = Literal["start", "high", "stable"]
"""An offset of a log: its start, its high watermark, or its last stable offset."""

PLACES: tuple[Place, ...] = ("start", "stable", "high")
"""The order of the requests, in which each offset is at least the one before it.

That holds whatever happens between the requests.
"""

_LATEST, _EARLIEST = -1, -2
_UNCOMMITTED, _COMMITTED = 0, 1
_ASKED: dict[Place, tuple[int, int]] = {
    "start": (_EARLIEST, _UNCOMMITTED),
    "high": (_LATEST, _UNCOMMITTED),
    "stable": (_LATEST, _COMMITTED),
}
_CONSUMER = -1
"""The replica id of a client that is not a replica."""


async def ask(client: Any, partition: TopicPartition, place: Place) -> int:
    """Return one of the offsets, read with a running client of aiokafka. Raises ``KafkaError``."""
    await client._wait_on_metadata(partition.topic)
    leader = client.cluster.leader_for_partition(partition)
    if leader is None or leader < 0:
        client.force_metadata_update()
        raise LeaderNotAvailableError(partition)
    timestamp, isolation = _ASKED[place]
    entry = (partition.partition, timestamp)
    request = OffsetRequest(_CONSUMER, isolation, [(partition.topic, [entry])])
    answer = await client.send(leader, request)
    (((_, ((_, code, _, offset, *_),)),)) = answer.topics
    error = for_code(code)
    if error is not NoError:
        if error.invalid_metadata:
            client.force_metadata_update()
        raise error(partition)
    return int(offset)
