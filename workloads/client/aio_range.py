"""Hides OFFSET_OUT_OF_RANGE from aiokafka unless the position is before the start of the log.

aiokafka's Fetch requests have no leader epoch (KIP-320). A former leader that does not know yet
that it is not the leader compares the position with its own log, which ends before what others have
committed since, and returns OFFSET_OUT_OF_RANGE. With ``auto.offset.reset`` a member of a group
then starts from the beginning (``docs/findings``, 20). Only a position before the start of the log
is out of range for good.
"""

from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.protocol.fetch import FetchRequest

from workloads.client import aio_offsets

_OUT_OF_RANGE: Final = 1
_NOT_LEADER: Final = 6
"""The error after which aiokafka looks for the leader, and fetches from the same position again."""


def doubt(consumer: Any) -> None:
    """Wrap a started consumer so that it never sees OFFSET_OUT_OF_RANGE for the end of a log."""
    client = consumer._client
    send = client.send

    async def heard(node: Any, request: Any, **options: Any) -> Any:
        answer = await send(node, request, **options)
        if isinstance(request, FetchRequest):
            answer.topics = [
                (topic, [await _believed(consumer, topic, row) for row in rows])
                for topic, rows in answer.topics
            ]
        return answer

    client.send = heard


async def _believed(consumer: Any, topic: str, row: Any) -> Any:
    partition, error, *rest = row
    if error != _OUT_OF_RANGE:
        return row
    assignment = consumer._subscription.subscription.assignment
    place = TopicPartition(topic, partition)
    state = None if assignment is None else assignment.state_value(place)
    if state is None or not state.has_valid_position:
        return row  # the partition is not assigned any more
    try:
        begins = await aio_offsets.ask(consumer._client, place, "start") > state.position
    except KafkaError:
        begins = False
    return row if begins else (partition, _NOT_LEADER, *rest)
