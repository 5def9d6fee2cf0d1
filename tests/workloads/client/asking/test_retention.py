"""Topics with small segments and little retention, with made up answers."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from workloads.client import aio_admin
from workloads.client.asking import retention
from workloads.client.asking.own_topics import Administrator
from workloads.client.asking.requests import ListOffsetsRequest, Place
from workloads.client.asking.retention import SETTINGS, Retention

PLACE = Place("t", 0)


async def unmoved(place: Place, leader: int, brokers: list[int]) -> str:
    """Move no replica."""
    return "unmoved"


class Client:
    """A client whose writes succeed."""

    def __init__(self) -> None:
        self.writes = 0
        self.cluster = SimpleNamespace(leader_for_partition=lambda partition: 1)

    async def _wait_on_metadata(self, topic: str) -> None:
        return None

    async def send(self, node: int, request: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            return SimpleNamespace(topics=[("t", [(0, 0, 5, 3, 1)])])
        self.writes += 1
        return SimpleNamespace(topics=[("t", [(0, 0)])])


async def test_both_kinds_of_topics_are_created_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic is created until that is acknowledged, and then written to."""
    created: list[tuple[str, Any]] = []
    outcomes = iter([("info", "Lost")])

    async def create(common: Any, new: Any) -> tuple[str, str | None]:
        created.append((new.name, new.topic_configs))
        return next(outcomes, ("ok", None))

    async def delete_records(*asked: Any) -> tuple[str, int | None, str | None]:
        return "fail", None, "Refused"

    monkeypatch.setattr(aio_admin, "create", create)
    monkeypatch.setattr(aio_admin, "delete_records", delete_records)
    monkeypatch.setattr(retention, "PAUSE_S", 0.0)
    client: Any = Client()
    topics = Retention(client, random.Random(1), "a", Administrator({}, 1), unmoved)
    said = [await topics.ask(PLACE, 1, [1]) for _ in range(20)]
    assert said[0].endswith("Lost")
    assert all(each.startswith("write a-by-") for each in said[1:])
    assert len(created) == len(SETTINGS) + 1
    assert dict(created) == {f"a-{kind}": dict(SETTINGS[kind]) for kind in SETTINGS}
    assert 19 <= client.writes <= 19 * (retention.WRITES_MAX + 1)


async def test_records_are_deleted_and_a_replica_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some numbers of writes all records are deleted, one is written, and a replica moves."""
    steps: list[Any] = []

    async def create(common: Any, new: Any) -> tuple[str, str | None]:
        return "ok", None

    async def delete_records(
        common: Any, partition: Any, offset: int
    ) -> tuple[str, int | None, str | None]:
        steps.append((partition.topic, offset, client.writes))
        return "ok", 7, None

    async def move(place: Place, leader: int, brokers: list[int]) -> str:
        steps.append((place.topic, leader, client.writes))
        return "moved"

    monkeypatch.setattr(aio_admin, "create", create)
    monkeypatch.setattr(aio_admin, "delete_records", delete_records)
    monkeypatch.setattr(retention, "PAUSE_S", 0.0)
    monkeypatch.setattr(retention, "DELETION_EVERY", 1)
    client: Any = Client()
    topics = Retention(client, random.Random(1), "a", Administrator({}, 1), move)
    said = await topics.ask(PLACE, 1, [1, 2])
    (topic, offset, before), moved = steps
    assert offset == -1
    assert moved == (topic, 1, before + 1)
    assert said.endswith("delete ok, NoError, find 3: NoError, moved")
    assert (await topics.ask(PLACE, 1, [2])).endswith("delete ok, NoError"), "no leader is known"
