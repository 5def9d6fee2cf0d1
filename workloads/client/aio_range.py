"""Out of range, by aiokafka: believed where a log begins behind a place, not where it ends before.

aiokafka's Fetch names no leader epoch (KIP-320). A former leader that has not heard yet that it is
none compares the place with its own log, which ends before what others have committed since, and
says OFFSET_OUT_OF_RANGE; by ``auto.offset.reset`` a member of a group then begins anew
(``docs/findings``, 20). Only a place before the beginning is out of range for good.
"""

from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.protocol.fetch import FetchRequest

from workloads.client import aio_offsets

_OUT_OF_RANGE: Final = 1
_NOT_LEADER: Final = 6
"""To which aiokafka looks for the leader, and asks again from the same place."""


def doubt(consumer: Any) -> None:
    """Have this consumer, which has started, hear of no place behind a log's end."""
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
        return row  # nobody is interested any more
    try:
        begins = await aio_offsets.ask(consumer._client, place, "start") > state.position
    except KafkaError:
        begins = False
    return row if begins else (partition, _NOT_LEADER, *rest)
