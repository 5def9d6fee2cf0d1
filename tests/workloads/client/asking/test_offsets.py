"""Where a reader with a rack sends its reads, with brokers whose answers are given."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from workloads.client.asking import offsets
from workloads.client.asking.offsets import Positions
from workloads.client.asking.requests import Place

PLACE, LEADER, NEAR, BROKERS = Place("t", 0), 1, 2, [1, 2]
NOT_LEADER = 6
Answer = int | Exception
"""An error code, or what is raised; the leader names the near replica in any case."""


async def asked(monkeypatch: pytest.MonkeyPatch, near: list[Answer], reads: int) -> list[int]:
    """Return the broker that each of some reads was sent to."""
    monkeypatch.setattr(offsets, "ELSEWHERE_P", 0.0)
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
