"""OffsetDelete (API 47), which aiokafka lacks: deletes committed offsets of a group."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Schema, String

_KEY = 47
_SUBSCRIBED = 86


class StillSubscribed(KafkaError):  # type: ignore[misc]
    """A member of the group subscribes to the topic, so none of its offsets is deleted."""


class _Answer(Response):  # type: ignore[misc]
    API_KEY = _KEY
    API_VERSION = 0
    SCHEMA = Schema(
        ("error_code", Int16),
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("error_code", Int16))),
            ),
        ),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    API_KEY = _KEY
    API_VERSION = 0
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("consumer_group", String("utf-8")),
        ("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))),
    )


class OffsetDeleteRequest(Request[_Question]):  # type: ignore[misc]
    """The request in the form in which aiokafka sends requests."""

    API_KEY = _KEY

    def __init__(self, group: str, topics: list[tuple[str, list[int]]]) -> None:
        self._group = group
        self._topics = topics

    def build(self, request_struct_class: type[_Question]) -> _Question:
        return request_struct_class(self._group, self._topics)


async def delete(
    send: Callable[[Any], Awaitable[Any]], group: str, places: Sequence[TopicPartition]
) -> None:
    """Send one request; raises ``KafkaError`` for an error of the group or a partition.

    Of several partitions' errors, the first one is raised.
    """
    topics: dict[str, list[int]] = defaultdict(list)
    for place in places:
        topics[place.topic].append(place.partition)
    answer = await send(OffsetDeleteRequest(group, list(topics.items())))
    codes = [answer.error_code]
    codes += [code for _, partitions in answer.topics for _, code in partitions]
    for code in codes:
        if code == _SUBSCRIBED and all(other == code for other in codes[1:]):
            raise StillSubscribed(group)
        error = for_code(code)
        if error is not NoError:
            raise error(group)
