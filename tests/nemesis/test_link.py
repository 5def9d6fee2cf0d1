"""Slow links on a cluster in memory."""

import random

import pytest

from nemesis import link
from nemesis.package import Shape
from tests.nemesis.conftest import FakeCluster

pytestmark = pytest.mark.usefixtures("impatient")

OPTIONS = {"latency_s": 0.05, "from": ["brokers"]}


async def test_slow_is_proved_and_taken_away(cluster: FakeCluster, rng: random.Random) -> None:
    """What the targets send to other brokers is late, which is measured, until it heals."""
    applied = await link.apply(cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert applied.effect.proved
    assert cluster.latency == {("broker-1", "broker-2"): 0.05, ("broker-1", "broker-3"): 0.05}
    assert (await link.heal(cluster, applied)).proved
    assert cluster.latency == {}


async def test_all_brokers_are_slow_to_each_other(cluster: FakeCluster, rng: random.Random) -> None:
    """Several targets are slow among themselves too."""
    await link.apply(cluster, "slow", list(cluster.brokers), OPTIONS, rng)
    assert len(cluster.latency) == 6


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A probe that is too quick, or no probe at all, proves nothing."""
    cluster.immortal = True
    applied = await link.apply(cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert not applied.effect.proved
    cluster.immortal, cluster.down = False, {"broker-2", "broker-3"}
    applied = await link.apply(cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert not applied.effect.proved


def test_draws() -> None:
    """Latencies within bounds; a lone broker is slow to ZooKeeper."""
    rng = random.Random(2)
    drawn = [link.draw(rng, Shape(("broker-1", "broker-2"))) for _ in range(50)]
    assert all(0.02 <= fault.options["latency_s"] <= 0.2 for fault in drawn)
    lone = [link.draw(rng, Shape(("broker-1",))) for _ in range(20)]
    assert {str(fault.options["from"]) for fault in lone} == {"['zookeeper']"}
