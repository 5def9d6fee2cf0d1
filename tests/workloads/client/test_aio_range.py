from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NotLeaderForPartitionError
from aiokafka.protocol.fetch import FetchRequest

from workloads.client import aio_offsets, aio_range

OUT_OF_RANGE, NOT_LEADER = 1, 6
PLACE = TopicPartition("t", 0)


class FakeConsumer:
    """A consumer with a position in ``t-0`` whose fetches get this error."""

    def __init__(self, position: int | None, error: int) -> None:
        state = SimpleNamespace(has_valid_position=position is not None, position=position)
        assignment = SimpleNamespace(state_value={PLACE: state}.get)
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
        self._client = SimpleNamespace(send=self._send)
        self._error = error

    async def _send(self, node: int, request: Any, **options: Any) -> Any:
        rows = [(0, self._error, -1, -1, b""), (1, OUT_OF_RANGE, -1, -1, b"")]
        return SimpleNamespace(topics=[("t", rows)])

    async def heard(self, request: Any) -> list[int]:
        """The errors of the partitions in the response."""
        answer = await self._client.send(2, request, group="any")
        return [error for _, rows in answer.topics for _, error, *_ in rows]


@pytest.fixture
def fetch() -> Any:
    return object.__new__(FetchRequest)


@pytest.mark.parametrize(
    ("begins", "error", "heard"),
    [
        (0, OUT_OF_RANGE, NOT_LEADER),  # the log ends before: maybe a former leader
        (7, OUT_OF_RANGE, NOT_LEADER),
        (8, OUT_OF_RANGE, OUT_OF_RANGE),  # the records there are deleted
        (8, 0, 0),
        (0, 5, 5),
        (None, OUT_OF_RANGE, NOT_LEADER),  # the start of the log is unknown
    ],
)
async def test_only_a_beginning_is_believed(
    fetch: Any, monkeypatch: pytest.MonkeyPatch, begins: int | None, error: int, heard: int
) -> None:
    """OFFSET_OUT_OF_RANGE is believed only for positions before the start of the log.

    Partitions without a position are left alone.
    """

    async def ask(client: Any, place: TopicPartition, what: str) -> int:
        assert (place, what) == (PLACE, "start")
        if begins is None:
            raise NotLeaderForPartitionError
        return begins

    monkeypatch.setattr(aio_offsets, "ask", ask)
    consumer = FakeConsumer(7, error)
    aio_range.doubt(consumer)
    assert await consumer.heard(fetch) == [heard, OUT_OF_RANGE]


async def test_other_answers_and_places_without_a_reader_stay(fetch: Any) -> None:
    """Partitions without a position, and responses to other requests, are unchanged."""
    consumer = FakeConsumer(None, OUT_OF_RANGE)
    aio_range.doubt(consumer)
    assert await consumer.heard(fetch) == [OUT_OF_RANGE, OUT_OF_RANGE]
    assert await consumer.heard("another request") == [OUT_OF_RANGE, OUT_OF_RANGE]
