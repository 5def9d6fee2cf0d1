"""Slow disks, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import slow_disk
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply


async def test_slow_and_quick_again(cluster: FakeCluster, rng: random.Random) -> None:
    """An operation takes as long as requested until the fault heals."""
    applied = await apply(slow_disk, cluster, "slow-disk", "leader:x-0", {"seconds": 0.005}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "broker-3: an operation takes 0.100 ms, then 5.100 ms"
    assert (await slow_disk.heal(cluster, applied)).proved
    assert set(cluster.disk_s.values()) == {0.0001}


async def test_a_disk_that_was_busy(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quickest of several operations counts, because one may wait for others on the disk."""
    quick = cluster.disk_takes_s
    waits = iter((0.011, 0.0, 0.0, 0.011, 0.0))

    async def busy(node: str) -> float:
        return await quick(node) + next(waits)

    monkeypatch.setattr(cluster, "disk_takes_s", busy)
    applied = await apply(slow_disk, cluster, "slow-disk", ["broker-1"], {"seconds": 0.005}, rng)
    assert applied.effect.how == "broker-1: an operation takes 0.100 ms, then 5.100 ms"
    assert applied.effect.proved
    assert (await slow_disk.heal(cluster, applied)).proved
    assert next(waits, None) is None


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A disk that is as quick as before, or was as slow before, proves nothing."""
    cluster.immortal = True
    applied = await apply(slow_disk, cluster, "slow-disk", ["broker-1"], {"seconds": 0.005}, rng)
    assert not applied.effect.proved
    cluster.immortal, cluster.disk_s["broker-1"] = False, 0.006
    applied = await apply(slow_disk, cluster, "slow-disk", ["broker-1"], {"seconds": 0.005}, rng)
    assert not applied.effect.proved


async def test_a_disk_that_stays_slow_is_not_healed(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A disk that is still slow is not healed."""
    applied = await apply(slow_disk, cluster, "slow-disk", ["broker-1"], {"seconds": 0.00005}, rng)
    assert not (await slow_disk.heal(cluster, applied)).proved, "0.1 ms is its usual time"


@given(seed=st.integers(0))
def test_draws(seed: int) -> None:
    """One broker is drawn, with a delay from the range."""
    fault = slow_disk.draw(random.Random(seed), ClusterShape(with_zookeeper(1)))
    low, high = slow_disk.SECONDS
    assert low <= fault.options["seconds"] <= high
