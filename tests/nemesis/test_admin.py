"""reassign and elect-leaders on a cluster in memory."""

import asyncio
import random
from typing import Any

import pytest

from model.layout import with_zookeeper
from model.roles import broker
from nemesis import admin
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

KEYS = ("x-0", "x-1", "y-0")


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster(brokers=4)
    cluster.place("x-0", 1, 2, 3)
    cluster.place("x-1", 2, 3, 4)
    cluster.place("__consumer_offsets-0", 1, 2, 3)
    return cluster


async def test_who_is_struck_leaves(cluster: FakeCluster, rng: random.Random) -> None:
    """Another broker gets the target's replica, until the heal moves the partition back."""
    applied = await apply(admin, cluster, "reassign", ["broker-1"], {"keys": ["x-0"]}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-1",), True)
    assert sorted(cluster.placed["x-0"].replicas) == ["broker-2", "broker-3", "broker-4"]
    assert applied.effect.how.startswith("x-0 from [broker-1 broker-2 broker-3] to [broker-")
    assert cluster.placed["x-1"].replicas == ("broker-2", "broker-3", "broker-4")
    healed = await admin.heal(cluster, applied)
    assert (healed.proved, healed.how) == (True, "1 partitions are where they should be")
    assert cluster.placed["x-0"].replicas == ("broker-1", "broker-2", "broker-3")


async def test_or_takes_a_place(cluster: FakeCluster, rng: random.Random) -> None:
    """A target without a replica replaces another broker, and keeps the replica with ``stay``."""
    options = {"keys": ["x-1"], "end": "stay"}
    applied = await apply(admin, cluster, "reassign", ["broker-1"], options, rng)
    there = cluster.placed["x-1"].replicas
    assert len(there) == 3
    assert "broker-1" in there
    assert (await admin.heal(cluster, applied)).proved
    assert cluster.placed["x-1"].replicas == there


async def test_without_anywhere_to_go_there_are_fewer(rng: random.Random) -> None:
    """Where no other broker is left, a partition temporarily has fewer replicas.

    A partition that lacks replicas gets them.
    """
    cluster = FakeCluster(brokers=3)
    cluster.place("x-0", 1, 2, 3)
    applied = await apply(admin, cluster, "reassign", ["broker-2"], {"end": "stay"}, rng)
    assert sorted(cluster.placed["x-0"].replicas) == ["broker-1", "broker-3"]
    assert (await admin.heal(cluster, applied)).proved
    assert sorted(cluster.placed["x-0"].replicas) == ["broker-1", "broker-2", "broker-3"]
    cluster.place("x-0", 1)
    await apply(admin, cluster, "reassign", ["broker-1"], {"factor": 2}, rng)
    assert sorted(cluster.placed["x-0"].replicas) == ["broker-2", "broker-3"]


async def test_replicas_by_number(cluster: FakeCluster, rng: random.Random) -> None:
    """The option ``replicas`` sets the replicas in that order, whatever the target."""
    options = {"keys": ["x-0"], "replicas": [4, 1]}
    assert (await apply(admin, cluster, "reassign", "controller", options, rng)).effect.proved
    assert cluster.placed["x-0"].replicas == (broker(4), broker(1))


async def test_a_move_is_cancelled(cluster: FakeCluster, rng: random.Random) -> None:
    """A move in progress is cancelled; a completed one is moved back."""
    options = {"keys": ["x-0"], "end": "cancel"}
    cluster.slow_moves = True
    applied = await apply(admin, cluster, "reassign", ["broker-1"], options, rng)
    assert applied.effect.proved
    assert cluster.placed["x-0"].is_moving
    assert (await admin.heal(cluster, applied)).proved
    assert cluster.log[1] == "reassign {'x-0': None}"
    assert cluster.placed["x-0"].replicas == ("broker-1", "broker-2", "broker-3")
    cluster.slow_moves = False
    applied = await apply(admin, cluster, "reassign", ["broker-1"], options, rng)
    assert (await admin.heal(cluster, applied)).proved
    assert cluster.log[-1] == "reassign {'x-0': ['broker-1', 'broker-2', 'broker-3']}"


async def test_what_is_refused_stays(cluster: FakeCluster, rng: random.Random) -> None:
    """A heal that the controller refuses is proved; one without an answer is not."""
    applied = await apply(admin, cluster, "reassign", ["broker-1"], {"keys": ["x-0"]}, rng)
    cluster.refusal = "INVALID_REPLICA_ASSIGNMENT"
    healed = await admin.heal(cluster, applied)
    assert (healed.proved, healed.how) == (
        True,
        "not moved back: x-0: INVALID_REPLICA_ASSIGNMENT",
    )
    cluster.controls = None
    healed = await admin.heal(cluster, applied)
    assert (healed.proved, healed.how) == (False, "not moved back: x-0: no answer")


async def test_nothing_moves(cluster: FakeCluster, rng: random.Random) -> None:
    """Without a controller that complies, the fault has no effect."""
    cluster.refusal = "NOT_CONTROLLER"
    applied = await apply(admin, cluster, "reassign", ["broker-1"], {"keys": ["x-0"]}, rng)
    assert (applied.effect.proved, applied.effect.how) == (
        False,
        "no partition moves: x-0: NOT_CONTROLLER",
    )
    assert (await admin.heal(cluster, applied)).proved
    applied = await apply(admin, cluster, "elect-leaders", ["broker-2"], {"keys": ["x-0"]}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no leader changed")
    with pytest.raises(ValueError, match="end = never"):
        await apply(admin, cluster, "reassign", ["broker-1"], {"end": "never"}, rng)


async def test_who_is_struck_leads(cluster: FakeCluster, rng: random.Random) -> None:
    """The target becomes preferred leader and is elected, or another replica if it has none."""
    applied = await apply(admin, cluster, "elect-leaders", ["broker-3"], {"keys": ["x-0"]}, rng)
    assert (applied.effect.proved, applied.effect.how) == (True, "x-0 by broker-3")
    assert cluster.placed["x-0"].leader == "broker-3"
    assert sorted(cluster.placed["x-0"].replicas) == ["broker-1", "broker-2", "broker-3"]
    await apply(admin, cluster, "elect-leaders", ["broker-1"], {"keys": ["x-1"]}, rng)
    assert cluster.placed["x-1"].leader in ("broker-3", "broker-4")
    assert (await admin.heal(cluster, applied)).proved


async def test_who_is_not_in_sync_is_asked_for_first(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A target that is not in sync is requested first; an in-sync replica is elected in the end."""
    cluster.place("x-0", 1, 2, 3, isr=(1, 2))
    applied = await apply(admin, cluster, "elect-leaders", ["broker-3"], {"keys": ["x-0"]}, rng)
    assert cluster.log[0] == "reassign {'x-0': ['broker-3', 'broker-1', 'broker-2']}"
    assert (applied.effect.proved, cluster.placed["x-0"].leader) == (True, "broker-2")


async def test_without_anybody_in_sync_somebody_is_preferred(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """If no other replica is in sync, another preferred leader is enough."""
    cluster.place("x-0", 1, 2, 3, isr=(1,))
    applied = await apply(admin, cluster, "elect-leaders", ["broker-3"], {"keys": ["x-0"]}, rng)
    assert applied.effect.proved
    assert applied.effect.how.startswith("x-0 now prefers leader broker-")
    assert cluster.placed["x-0"].leader == "broker-1"


async def test_leaders_in_turn(cluster: FakeCluster, rng: random.Random) -> None:
    """With ``times`` several leaders are elected one after another."""
    options = {"keys": ["x-0"], "times": 3, "gap_s": 0.01}
    applied = await apply(admin, cluster, "elect-leaders", ["broker-3"], options, rng)
    assert applied.effect.how.count("x-0 by") == 3


async def test_leaders_in_turn_have_one_time_together(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The elections after the first share a time limit, also when none succeeds any more."""
    elect = cluster.elect_preferred

    async def once(keys: Any) -> Any:
        answers = await elect(keys)
        cluster.refusal = "NOT_CONTROLLER"
        return answers

    monkeypatch.setattr(cluster, "elect_preferred", once)
    monkeypatch.setattr(admin, "WITHIN_S", 60.0)
    monkeypatch.setattr(admin, "FURTHER_S", 0.1)
    options = {"keys": ["x-0"], "times": 9, "gap_s": 0.01}
    async with asyncio.timeout(admin.WITHIN_S / 2):
        applied = await apply(admin, cluster, "elect-leaders", ["broker-3"], options, rng)
    assert (applied.effect.proved, applied.effect.how) == (True, "x-0 by broker-3")


async def test_those_of_brokers(cluster: FakeCluster, rng: random.Random) -> None:
    """Internal partitions are moved if ``internal`` is set, and never otherwise."""
    await apply(admin, cluster, "reassign", ["broker-1"], {"internal": True}, rng)
    assert "broker-4" in cluster.placed["__consumer_offsets-0"].replicas
    assert cluster.placed["x-0"].replicas == ("broker-1", "broker-2", "broker-3")
    cluster.place("__consumer_offsets-0", 1, 2, 3)
    await apply(admin, cluster, "reassign", ["broker-1"], {"keys": ["not-yet-0"]}, rng)
    assert "broker-4" in cluster.placed["x-0"].replicas
    assert "broker-4" not in cluster.placed["__consumer_offsets-0"].replicas


def test_draws() -> None:
    """Both faults and all ends are drawn; elections only with several replicas."""
    rng = random.Random(3)
    shape = ClusterShape(with_zookeeper(3), KEYS, coordinators=("group-coordinator:g",))
    faults = [admin.draw(rng, shape) for _ in range(100)]
    assert {fault.fault for fault in faults} == set(admin.PACKAGE.names)
    ends = {fault.options["end"] for fault in faults if fault.fault == "reassign"}
    assert ends == set(admin.ENDS)
    assert {"internal" in fault.options for fault in faults} == {True, False}
    alone = ClusterShape(shape.layout, KEYS, replicas=1)
    assert {admin.draw(rng, alone).fault for _ in range(50)} == {"reassign"}
    assert admin.room(alone)
    assert not admin.room(ClusterShape(with_zookeeper(1), KEYS))
    assert not admin.room(ClusterShape(shape.layout))
