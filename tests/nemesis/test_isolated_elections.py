"""Elections among brokers that cannot reach each other, on a cluster in memory."""

import random

import pytest

from model.layout import with_zookeeper
from nemesis import isolated_elections
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster(brokers=4)
    cluster.place("x-0", 2, 3, 4)
    return cluster


async def test_leaders_follow_one_another(cluster: FakeCluster, rng: random.Random) -> None:
    """One election precedes the cut, which spares the controller's links, and others follow it."""
    options = {"keys": ["x-0"], "times": 2, "gap_s": 0.0}
    applied = await apply(isolated_elections, cluster, "elect-apart", ["broker-3"], options, rng)
    assert applied.effect.proved
    assert applied.effect.how.startswith("x-0 by broker-3; then x-0 by broker-")
    assert applied.effect.how.count("; then x-0 by") == 2
    cut = {link for link, count in cluster.cuts.items() if count}
    assert cut == {(one, other) for one in cluster.brokers[1:] for other in cluster.brokers[1:]} - {
        (one, one) for one in cluster.brokers
    }
    healed = await isolated_elections.PACKAGE.heal(cluster, applied)
    assert healed.proved
    assert not any(cluster.cuts.values())


async def test_both_are_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """Both the election and the cut must be proved."""
    options = {"keys": ["x-0"], "times": 1, "gap_s": 0.0}
    cluster.immortal = True
    assert not (
        await apply(isolated_elections, cluster, "elect-apart", ["broker-3"], options, rng)
    ).effect.proved
    cluster.immortal, cluster.refusal = False, "NOT_CONTROLLER"
    assert not (
        await apply(isolated_elections, cluster, "elect-apart", ["broker-3"], options, rng)
    ).effect.proved


def test_draws() -> None:
    """Several elections are drawn, and only with three brokers that could lead."""
    shape = ClusterShape(with_zookeeper(3), ("x-0", "x-1"))
    faults = [isolated_elections.draw(random.Random(seed), shape) for seed in range(50)]
    low, high = isolated_elections.TIMES
    assert {fault.options["times"] for fault in faults} == set(range(low, high + 1))
    assert isolated_elections.room(shape)
    assert not isolated_elections.room(ClusterShape(shape.layout, shape.keys, replicas=2))
    assert not isolated_elections.room(ClusterShape(shape.layout))
