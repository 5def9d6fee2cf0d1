"""Where a reader with a rack sends its reads, with brokers whose answers are given."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest_v11

from workloads.client.asking import offsets
from workloads.client.asking.offsets import Positions
from workloads.client.asking.requests import Place

PLACE, LEADER, NEAR, BROKERS = Place("t", 0), 1, 2, [1, 2]
NOT_LEADER, OUT_OF_RANGE = 6, 1
Answer = int | Exception
"""An error code, or what is raised; the leader names the near replica in any case."""


async def asked(monkeypatch: pytest.MonkeyPatch, near: list[Answer], reads: int) -> list[int]:
    """Return the broker that each of some reads was sent to."""
    monkeypatch.setattr(offsets, "ELSEWHERE_P", 0.0)
    monkeypatch.setattr(offsets, "IN_SESSION_P", 0.0)
    asked_of: list[int] = []

    async def send(node: int, request: Any) -> Any:
        asked_of.append(node)
        answer: Answer = near.pop(0) if node == NEAR else 0
        if isinstance(answer, Exception):
            raise answer
        preferred = NEAR if node == LEADER else -1
        row: tuple[Any, ...] = (0, answer, 9, 9, 0, [], preferred, b"")
        return SimpleNamespace(topics=[("t", [row])])

    positions = Positions(send, random.Random(4), "near")
    for _ in range(reads):
        try:
            await positions.read(PLACE, LEADER, BROKERS)
        except KafkaConnectionError:
            continue
    return asked_of


@pytest.mark.parametrize(
    ("near", "nodes"),
    [
        ([0, 0, 0], [LEADER, NEAR, NEAR, NEAR]),
        ([0, NOT_LEADER], [LEADER, NEAR, NEAR, LEADER]),
        ([KafkaConnectionError()], [LEADER, NEAR, LEADER]),
    ],
)
async def test_a_replica_is_preferred_until_it_fails(
    monkeypatch: pytest.MonkeyPatch, near: list[Answer], nodes: list[int]
) -> None:
    """An error and a lost connection send the reader to the leader again (KIP-392)."""
    assert await asked(monkeypatch, near, len(nodes)) == nodes


async def begun(code: int, reads: int, seed: int = 4) -> tuple[list[int], int]:
    """Return where reads begin that all have this answer, and the position after them."""
    offsets_asked: list[int] = []

    async def send(node: int, request: Any) -> Any:
        ((_, ((_, _, offset, *_),)),) = request.build(FetchRequest_v11).topics
        offsets_asked.append(offset)
        return SimpleNamespace(topics=[("t", [(0, code, 9, 9, 0, [], -1, b"")])])

    positions = Positions(send, random.Random(seed), "near")
    known = positions._of(PLACE)
    known.position = 100
    while len(offsets_asked) < reads and known.position == 100:
        await positions.read(PLACE, LEADER, BROKERS)
    return offsets_asked, known.position


async def test_a_read_begins_at_the_position_or_near_it() -> None:
    """Some reads begin at records that were read already, some beyond the position."""
    offsets_asked, position = await begun(0, 400)
    assert set(offsets_asked) == {*range(92, 102), 105}
    assert offsets_asked.count(100) > 200
    assert position == 100


async def test_only_a_read_at_the_position_shows_that_it_is_out_of_range() -> None:
    """Records before the position may be deleted, and those beyond it may not exist yet."""
    shifted = 0
    for seed in range(20):
        (*others, last), position = await begun(OUT_OF_RANGE, 400, seed)
        assert (last, position) == (100, -1)
        assert 100 not in others
        shifted += len(others)
    assert shifted > 0


@pytest.mark.parametrize(
    ("session", "again", "said"),
    [
        (7, [("t", [(0, 0, 9, 9, 0, [], NEAR, b"")])], "in a session from 2"),
        (7, [("t", [(0, NOT_LEADER, 9, 9, 0, [], -1, b"")])], "in a session NotLeaderFor"),
        (7, [], "in a session nothing (NoError)"),
        (0, [], "in a session not at all"),
    ],
)
async def test_a_reader_asks_twice_in_a_fetch_session(
    monkeypatch: pytest.MonkeyPatch, session: int, again: list[Any], said: str
) -> None:
    """The second request continues the session, and names the partition again (KIP-227)."""
    monkeypatch.setattr(offsets, "IN_SESSION_P", 1.0)
    monkeypatch.setattr(offsets, "ELSEWHERE_P", 0.0)
    monkeypatch.setattr(offsets.Positions, "_shift", lambda self: 0)
    row: tuple[Any, ...] = (0, 0, 9, 9, 0, [], NEAR, b"")
    answers = [[("t", [row])], [("t", [row])], again]
    sessions: list[tuple[int, int]] = []

    async def send(node: int, request: Any) -> Any:
        built = request.build(FetchRequest_v11)
        sessions.append((built.session_id, built.session_epoch))
        return SimpleNamespace(error_code=0, session_id=session, topics=answers.pop(0))

    told = await Positions(send, random.Random(4), "near").read(PLACE, LEADER, BROKERS)
    assert said in told
    assert sessions == [(0, -1), (0, 0), (7, 1)][: 3 if session else 2]
