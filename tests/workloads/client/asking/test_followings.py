"""A reader that polls in a fetch session, with a broker whose answers are given."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest_v11

from broker_impl.wire.batch import Record, encode_batch
from workloads.client.asking import followings
from workloads.client.asking.followings import Followings, PollRequest
from workloads.client.asking.requests import ListOffsetsRequest, Place

A, B = Place("t", 0), Place("t", 1)
NOT_LEADER, SESSION_NOT_FOUND = 6, 70


class Leader:
    """Leads two partitions that end at 10, and gives these answers to fetches."""

    def __init__(self, *answers: list[tuple[int, int, bytes]] | int, session: int = 7) -> None:
        self._answers = list(answers)
        self._session = session
        self.asked: list[FetchRequest_v11] = []

    async def send(self, node: int, request: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            return SimpleNamespace(topics=[("t", [(0, 0, -1, 10, 3)])])
        assert isinstance(request, PollRequest)
        self.asked.append(request.build(FetchRequest_v11))
        answer = self._answers.pop(0) if self._answers else []
        if isinstance(answer, int):
            return SimpleNamespace(error_code=answer, session_id=0, topics=[])
        rows: list[Any] = [(number, code, 9, 9, 0, [], -1, data) for number, code, data in answer]
        topics = [("t", rows)] if rows else []
        return SimpleNamespace(error_code=0, session_id=self._session, topics=topics)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followings, "PAUSES_S", (0.0,))


async def followed(leader: Leader) -> str:
    return await Followings(leader.send, random.Random(1), lambda topic, node: [A, B]).ask(
        A, 1, [1]
    )


async def test_a_partition_is_named_again_after_it_has_moved() -> None:
    """The first fetch names all, each later one has the next epoch of the session."""
    batch = encode_batch([Record(value=b"v")] * 2, base_offset=10)
    leader = Leader([], [(1, 0, batch)], [(1, 0, b"")])
    assert "2 partitions: 2 offsets further" in await followed(leader)
    named = [
        {number: offset for _, rows in each.topics for number, _, offset, *_ in rows}
        for each in leader.asked
    ]
    assert named[:4] == [{0: 10, 1: 10}, {}, {1: 12}, {}]
    sessions = [(each.session_id, each.session_epoch) for each in leader.asked]
    assert sessions == [(0, 0), *((7, number) for number in range(1, followings.POLLS + 1))]


async def test_a_partition_with_an_error_is_removed() -> None:
    """Without partitions, the reader stops."""
    leader = Leader([], [(0, NOT_LEADER, b"")], [], [(1, NOT_LEADER, b"")])
    assert "no partition is left" in await followed(leader)
    assert [each.forgotten_topics_data for each in leader.asked] == [[], [], [("t", [0])], []]


@pytest.mark.parametrize(
    ("leader", "said"),
    [
        (Leader([], SESSION_NOT_FOUND), "FetchSessionIdNotFound"),
        (Leader(session=0), "no session"),
    ],
)
async def test_a_session_may_be_refused(leader: Leader, said: str) -> None:
    """By a broker that has no room for it, or that has lost it."""
    assert said in await followed(leader)
