"""Slow links on a cluster in memory."""

import asyncio
import itertools
import random

import pytest

from model.layout import with_zookeeper
from nemesis import slow_link
from nemesis.draws import ClusterShape
from nemesis.package import Effect
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

OPTIONS = {"latency_s": 0.05, "from": ["brokers"]}


async def test_slow_is_proved_and_taken_away(cluster: FakeCluster, rng: random.Random) -> None:
    """What the targets send to other brokers is measured to be late until the fault heals."""
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert applied.effect.proved
    assert cluster.latency == {("broker-1", "broker-2"): [0.05], ("broker-1", "broker-3"): [0.05]}
    assert (await slow_link.heal(cluster, applied)).proved
    assert cluster.latency == {}


async def test_all_brokers_are_slow_to_each_other(cluster: FakeCluster, rng: random.Random) -> None:
    """Several targets are slow to each other as well."""
    await apply(slow_link, cluster, "slow", list(cluster.brokers), OPTIONS, rng)
    assert len(cluster.latency) == 6


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A probe that is too quick, or no probe at all, proves nothing."""
    cluster.immortal = True
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert not applied.effect.proved
    cluster.immortal, cluster.down = False, {"broker-2", "broker-3"}
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    assert not applied.effect.proved


async def test_a_heal_that_changes_nothing_is_not_proved(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links that are still slow, or silent although both ends run, are not healed."""
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    cluster.lag_s = 0.05
    healed = await slow_link.heal(cluster, applied)
    assert healed == Effect(False, "0 of 2 links are quicker than the latency")
    cluster.lag_s = 0.0
    monkeypatch.setattr(cluster, "round_trip_s", lambda *_: asyncio.sleep(0, None))
    assert not (await slow_link.heal(cluster, applied)).proved


async def test_one_quick_answer_of_a_busy_machine_is_enough(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quickest of several probes counts, because a busy machine may delay some of them."""
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    times = itertools.cycle([0.3, 0.2, 0.04])

    async def busy(source: str, target: str) -> float:
        return next(times)

    monkeypatch.setattr(cluster, "round_trip_s", busy)
    assert (await slow_link.heal(cluster, applied)).proved


async def test_nodes_that_are_down_need_not_answer(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A link to a node that died or was paused meanwhile is healed without an answer."""
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    cluster.down, cluster.paused = {"broker-2"}, {"broker-3"}
    healed = await slow_link.heal(cluster, applied)
    assert healed.proved
    assert healed.how.endswith("2 lead to nodes that are down")


async def test_slow_to_clients(cluster: FakeCluster, rng: random.Random) -> None:
    """Clients answer no probes, so the broker that is slow to them is probed."""
    options = OPTIONS | {"from": ["clients"]}
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], options, rng)
    assert applied.effect.proved
    assert (await slow_link.heal(cluster, applied)).proved


async def test_a_mend_is_not_carried_out_twice(cluster: FakeCluster, rng: random.Random) -> None:
    """A repeated heal does not remove the latency of another fault."""
    applied = await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    await slow_link.heal(cluster, applied)
    await apply(slow_link, cluster, "slow", ["broker-1"], OPTIONS, rng)
    await slow_link.heal(cluster, applied)
    assert list(cluster.latency.values()) == [[0.05], [0.05]]


def test_draws() -> None:
    """Latencies are drawn from their range; a single broker is slow to ZooKeeper."""
    rng = random.Random(2)
    drawn = [slow_link.draw(rng, ClusterShape(with_zookeeper(2))) for _ in range(50)]
    assert all(0.02 <= fault.options["latency_s"] <= 0.2 for fault in drawn)
    lone = [slow_link.draw(rng, ClusterShape(with_zookeeper(1))) for _ in range(20)]
    assert {str(fault.options["from"]) for fault in lone} == {"['zookeeper']"}
