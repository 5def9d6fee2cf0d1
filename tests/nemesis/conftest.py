"""A cluster that exists only in memory, with every capability."""

import random
from collections import Counter

import pytest

from model import roles
from model.roles import ZOOKEEPER, NodeId
from nemesis import proof


class FakeCluster:
    """Does at once what it is told, and remembers it."""

    def __init__(self, brokers: int = 3) -> None:
        self.brokers: tuple[NodeId, ...] = tuple(roles.broker(n + 1) for n in range(brokers))
        self.nodes: tuple[NodeId, ...] = (*self.brokers, ZOOKEEPER)
        self.down: set[NodeId] = set()
        self.paused: set[NodeId] = set()
        self.cuts: Counter[tuple[NodeId, NodeId]] = Counter()
        self.refused: Counter[tuple[NodeId, NodeId]] = Counter()
        self.latency: dict[tuple[NodeId, NodeId], float] = {}
        self.log: list[str] = []
        self.immortal = False
        """Nothing that is done to it has any effect."""
        self.exit_status = 0
        self.leaders: dict[str, NodeId] = {"x-0": self.brokers[-1]}
        self.controls: NodeId | None = self.brokers[0]

    def bootstrap(self, client: str | None = None) -> str:
        return ""

    async def start(self) -> None:
        self.log.append("start")

    async def stop(self) -> None:
        self.log.append("stop")

    async def recover(self, timeout_s: float) -> bool:
        self.log.append("recover")
        return True

    async def kill(self, node: NodeId) -> None:
        self.log.append(f"kill {node}")
        if not self.immortal:
            self.down.add(node)

    async def start_node(self, node: NodeId) -> None:
        assert node in self.down, f"{node} runs"
        self.log.append(f"start {node}")
        self.down.discard(node)

    async def stop_node(self, node: NodeId) -> int:
        self.log.append(f"stop {node}")
        self.down.add(node)
        return self.exit_status

    async def is_running(self, node: NodeId) -> bool:
        return node not in self.down

    async def pause(self, node: NodeId) -> None:
        if not self.immortal:
            self.paused.add(node)

    async def resume(self, node: NodeId) -> None:
        self.paused.discard(node)

    async def is_paused(self, node: NodeId) -> bool:
        return node in self.paused

    async def cut(self, source: NodeId, target: NodeId) -> None:
        self.cuts[source, target] += 1

    async def heal(self, source: NodeId, target: NodeId) -> None:
        self.cuts[source, target] -= 1

    async def heal_all(self) -> None:
        self.cuts.clear()
        self.refused.clear()

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        if target in self.down:
            return None
        return self.cuts[source, target] > 0 and not self.immortal

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        self.refused[one, other] += 1

    async def accept(self, one: NodeId, other: NodeId) -> None:
        self.refused[one, other] -= 1

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        return self.refused[one, other] > 0 and not self.immortal

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        self.latency[source, target] = latency_s

    async def quicken(self, source: NodeId, target: NodeId) -> None:
        del self.latency[source, target]

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        if target in self.down:
            return None
        return 0.001 + (0 if self.immortal else self.latency.get((source, target), 0))

    async def controller(self) -> NodeId | None:
        return self.controls

    async def leader(self, key: str) -> NodeId | None:
        return self.leaders.get(key)

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        return self.brokers


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes that nobody answers are repeated without a pause."""
    monkeypatch.setattr(proof, "BETWEEN_S", 0.0)


@pytest.fixture
def rng() -> random.Random:
    return random.Random(7)
