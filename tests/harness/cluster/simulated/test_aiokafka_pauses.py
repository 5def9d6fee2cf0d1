"""The pauses of aiokafka's clients, in virtual time."""

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher

from harness.cluster.simulated import aiokafka_pauses
from harness.simulation.world import World

BACKOFF_S = 0.1
KNOWN, UNKNOWN, NONE = 1, 2, -1


def in_a_world(main: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, float]:
    """Return what ``main`` returns, and how many virtual seconds it takes, to hundredths."""
    world = World(1)
    process = world.spawn(world.host("clients"), main, "client")
    result = world.run(process)
    return result, round(world.now, 2)


class Client:
    """What a fetcher and a metadata update use of an ``AIOKafkaClient``."""

    def __init__(self) -> None:
        self._retry_backoff = BACKOFF_S
        self.updates = 0
        self.cluster = SimpleNamespace(
            broker_metadata=lambda node: "a broker" if node == KNOWN else None
        )

    def force_metadata_update(self) -> None:
        self.updates += 1


@pytest.mark.parametrize(
    ("preferred", "seconds", "updates"),
    [(UNKNOWN, BACKOFF_S, 1), (KNOWN, 0.0, 0), (NONE, 0.0, 0)],
)
def test_a_consumer_pauses_only_if_it_does_not_know_the_preferred_replica(
    monkeypatch: pytest.MonkeyPatch, preferred: int, seconds: float, updates: int
) -> None:
    client = Client()
    fetcher: Any = object.__new__(aiokafka_pauses.PausingFetcher)
    fetcher._client, fetcher._retry_backoff = client, BACKOFF_S
    fetcher._preferred_read_replica, fetcher._preferred_replica_ttl = {}, 300
    fetcher._is_directed_in_vain = False

    async def fetch(self: Any, assignment: Any, node_id: int, request: Any) -> bool:
        self._update_preferred_read_replica(TopicPartition("t", 0), preferred)
        return True

    monkeypatch.setattr(Fetcher, "_proc_fetch_request", fetch)
    wakes, took_s = in_a_world(lambda: fetcher._proc_fetch_request(None, 0, None))
    assert (wakes, took_s, client.updates) == (True, seconds, updates)
    assert not fetcher._is_directed_in_vain


@pytest.mark.parametrize(
    ("second", "third", "seconds"),
    [({"a"}, {"a"}, 2 * BACKOFF_S), ({"a", "b"}, {"a", "b"}, BACKOFF_S), ({"b"}, {"c"}, 0.0)],
)
def test_metadata_of_the_same_topics_are_updated_once_in_the_backoff(
    monkeypatch: pytest.MonkeyPatch, second: set[str], third: set[str], seconds: float
) -> None:
    client: Any = Client()
    asked = []

    async def update(client: Any, metadata: Any, topics: Any) -> bool:
        asked.append(topics)
        return True

    monkeypatch.setattr(aiokafka_pauses, "_update", update)

    async def three_times() -> None:
        for topics in ({"a"}, second, third):
            assert await aiokafka_pauses._update_after_pause(client, client.cluster, topics)

    _, took_s = in_a_world(three_times)
    assert took_s == seconds
    assert asked == [{"a"}, second, third]


def test_metadata_for_another_view_are_never_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = Client()

    async def update(client: Any, metadata: Any, topics: Any) -> bool:
        return False

    monkeypatch.setattr(aiokafka_pauses, "_update", update)

    async def twice() -> list[bool]:
        other = object()
        return [await aiokafka_pauses._update_after_pause(client, other, None) for _ in range(2)]

    assert in_a_world(twice) == ([False, False], 0.0)
