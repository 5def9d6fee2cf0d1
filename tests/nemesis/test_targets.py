"""Targets by name and by role."""

import random

import pytest

from model.layout import with_kraft, with_zookeeper
from nemesis import targets
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster


async def test_roles_are_resolved_when_it_fires(cluster: FakeCluster, rng: random.Random) -> None:
    """Roles are resolved to the nodes that have them when the fault is applied."""
    assert await targets.resolve(cluster, "leader:x-0", rng) == ("broker-3",)
    assert await targets.resolve(cluster, "controller", rng) == ("broker-1",)
    assert await targets.resolve(cluster, ["zookeeper"], rng) == ("zookeeper",)
    assert await targets.resolve(cluster, "not-controller", rng) == ("broker-2",)
    cluster.leaders |= {"group/g": "broker-2", "transaction/t:1": "broker-3"}
    assert await targets.resolve(cluster, "group-coordinator:g", rng) == ("broker-2",)
    assert await targets.resolve(cluster, "transaction-coordinator:t:1", rng) == ("broker-3",)
    cluster.controls = "broker-3"
    assert await targets.resolve(cluster, "not-controller", rng) == ("broker-1",)


async def test_vacant_role_is_replaced(cluster: FakeCluster, rng: random.Random) -> None:
    """If no node has the role, a running broker takes its place."""
    cluster.down, cluster.paused, cluster.controls = {"broker-1"}, {"broker-2"}, None
    assert await targets.resolve(cluster, "leader:unknown-0", rng) == ("broker-3",)
    assert await targets.resolve(cluster, "controller", rng) == ("broker-3",)


async def test_fallen_target_is_replaced(cluster: FakeCluster, rng: random.Random) -> None:
    """A broker that is already down is replaced by one that is not among the targets."""
    cluster.down = {"broker-1"}
    assert await targets.resolve(cluster, ["broker-1"], rng) != ("broker-1",)
    assert await targets.resolve(cluster, ["broker-1", "broker-2"], rng) == ("broker-3", "broker-2")
    cluster.down = set(cluster.brokers)
    assert await targets.resolve(cluster, ["broker-1"], rng) == ("broker-1",), "nobody stands"


async def test_unknown_role_is_an_error(cluster: FakeCluster, rng: random.Random) -> None:
    """An unknown target is an error that lists the valid ones."""
    with pytest.raises(
        ValueError, match="not-controller, leader:TOPIC-PARTITION, group-coordinator:GROUP"
    ):
        await targets.resolve(cluster, "king", rng)


def test_only_brokers_are_drawn_where_a_controller_is_none() -> None:
    """Separate controllers hold no replica and no client sends them requests."""
    rng = random.Random(1)
    combined = ClusterShape(with_kraft(2, 1, combined=True), ("x-0",))
    separate = ClusterShape(with_kraft(2, 3, combined=False), ("x-0",))
    brokers = {"leader:x-0", "['broker-1']", "['broker-2']"}
    for shape, expected in ((combined, {"controller", *brokers}), (separate, brokers)):
        drawn = {str(targets.draw_broker(rng, shape)) for _ in range(100)}
        assert drawn == expected


def test_draw_names_every_kind_of_target() -> None:
    """Nodes, controller and leaders are drawn, leaders only if partitions are known."""
    rng = random.Random(1)
    shape = ClusterShape(with_zookeeper(2), ("x-0",))
    drawn = [targets.draw_one(rng, shape) for _ in range(100)]
    assert {str(target) for target in drawn} == {
        *("controller", "leader:x-0", "['broker-1']", "['broker-2']")
    }
    coordinated = ClusterShape(
        with_zookeeper(1), coordinators=("group-coordinator:g", "group-coordinator:h")
    )
    drawn = [targets.draw_one(rng, coordinated) for _ in range(100)]
    assert {str(target) for target in drawn} == {
        *("controller", "['broker-1']", "group-coordinator:g", "group-coordinator:h")
    }
    keyless = ClusterShape(with_zookeeper(1))
    assert "leader" not in str([targets.draw_one(rng, keyless) for _ in range(50)])


def test_keepers_of_the_metadata_are_targets_by_layout() -> None:
    """ZooKeeper's servers or the controllers may be targets where a rule allows keepers."""
    ensemble = with_zookeeper(2, 3)
    assert targets.ONLY_KEEPERS.refusal(["zookeeper-1", "zookeeper-3"], ensemble) is None
    assert targets.NODES.refusal(["broker-1", "zookeeper-2"], ensemble) is None
    assert targets.BROKERS.refusal(["zookeeper-2"], ensemble) == (
        "no node zookeeper-2 (broker-1, broker-2)"
    )
    assert targets.ONLY_KEEPERS.refusal(["broker-1"], ensemble) == (
        "no node broker-1 (zookeeper-1, zookeeper-2, zookeeper-3)"
    )
    separate = with_kraft(1, 3, combined=False)
    assert targets.NODES.refusal(["controller-3"], separate) is None
    combined = with_kraft(3, 2, combined=True)
    assert targets.ONLY_KEEPERS.refusal(["broker-2"], combined) is None
    assert targets.ONLY_KEEPERS.refusal(["broker-3"], combined) == (
        "no node broker-3 (broker-1, broker-2)"
    )
    assert targets.NODES.refusal(["controller-1"], combined) == (
        "no node controller-1 (broker-1, broker-2, broker-3)"
    )
