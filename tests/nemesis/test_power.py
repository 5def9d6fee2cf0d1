"""A loss of power, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.roles import ZOOKEEPER
from nemesis import power, schedule
from nemesis.package import Shape
from tests.nemesis.conftest import FakeCluster

pytestmark = pytest.mark.usefixtures("impatient")


async def test_off_and_on_again(cluster: FakeCluster, rng: random.Random) -> None:
    """It is off, which is proved, until it heals: then it runs, registered anew."""
    applied = await power.apply(cluster, "power-loss", "leader:x-0", {"after": 5}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "broker-3: off, 100 bytes were not synced"
    assert cluster.unpowered == {"broker-3"}
    assert cluster.log == ["off broker-3 after 5"]
    healed = await power.heal(cluster, applied)
    assert healed.proved
    assert healed.how == "broker-3 has power and runs, every replica is in sync"
    assert (cluster.unpowered, cluster.down) == (set(), set())


async def test_it_may_wait_for_a_rename(cluster: FakeCluster, rng: random.Random) -> None:
    """Of a file whose name ends so."""
    await power.apply(cluster, "power-loss", "leader:x-0", {"renaming": ".swap"}, rng)
    assert cluster.log == ["off broker-3 renaming .swap"]


async def test_zookeeper_can_be_struck(cluster: FakeCluster, rng: random.Random) -> None:
    """It is in no ISR, and registered nowhere."""
    applied = await power.apply(cluster, "power-loss", [ZOOKEEPER], {}, rng)
    assert (applied.targets, applied.effect.proved) == ((ZOOKEEPER,), True)
    assert (await power.heal(cluster, applied)).proved


async def test_a_cluster_with_replicas_out_of_sync_is_spared(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """Nobody is struck, and nothing is proved."""
    cluster.whole = False
    applied = await power.apply(cluster, "power-loss", ["broker-1"], {}, rng)
    assert (applied.targets, applied.effect.proved, cluster.unpowered) == ((), False, set())
    assert (await power.heal(cluster, applied)).proved


async def test_the_only_one_in_sync_is_spared(cluster: FakeCluster, rng: random.Random) -> None:
    """Another is struck in its place; nobody, when all are the only one somewhere."""
    cluster.isrs = {"x-0": cluster.brokers, "y-0": ("broker-1",)}
    applied = await power.apply(cluster, "power-loss", ["broker-1"], {}, rng)
    assert applied.effect.proved
    assert applied.targets[0] in ("broker-2", "broker-3")
    assert (await power.heal(cluster, applied)).proved
    cluster.isrs = {f"{node}-0": (node,) for node in cluster.brokers}
    applied = await power.apply(cluster, "power-loss", ["broker-1"], {}, rng)
    assert (applied.targets, applied.effect.proved, cluster.unpowered) == ((), False, set())


async def test_several_only_when_nobody_is_spared(cluster: FakeCluster, rng: random.Random) -> None:
    """A plan may cost what it likes; by itself it strikes one."""
    both = ["broker-1", "broker-2"]
    with pytest.raises(ValueError, match="one machine at a time, not broker-1, broker-2"):
        await power.apply(cluster, "power-loss", both, {}, rng)
    assert cluster.unpowered == set()
    cluster.whole = False
    applied = await power.apply(cluster, "power-loss", both, {"spare": False}, rng)
    assert (applied.effect.proved, cluster.unpowered) == (True, set(both))
    assert (await power.heal(cluster, applied)).proved, "nothing else is waited for"


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A machine that still answers has power."""
    cluster.immortal = True
    applied = await power.apply(cluster, "power-loss", ["broker-1"], {}, rng)
    assert not applied.effect.proved
    assert applied.effect.how == "broker-1: still answers"


async def test_its_former_session_must_be_over(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as its old znode stands, all looks whole and is not; the heal can be repeated."""
    applied = await power.apply(cluster, "power-loss", ["broker-2"], {}, rng)

    async def registration(node: str) -> int | None:
        return 1

    with monkeypatch.context() as patch:
        patch.setattr(cluster, "registration", registration)
        assert not (await power.heal(cluster, applied)).proved
    assert (await power.heal(cluster, applied)).proved


@given(seed=st.integers(0), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, session_s: float) -> None:
    """One machine, alone, spared where it must be."""
    shape = Shape(("broker-1", "broker-2", "broker-3"), ("x-0",), session_s)
    fault = power.draw(random.Random(seed), shape)
    assert fault.alone
    assert fault.options["spare"] is True
    synced = Shape(shape.brokers, shape.keys, session_s, synced=True)
    assert power.draw(random.Random(seed), synced).options["spare"] is False
    assert 0 <= fault.options.get("after", 0) <= power.OPERATIONS_MAX
    assert 0.19 <= fault.duration_s / session_s <= 2.01


@pytest.mark.parametrize(
    ("min_isr", "synced", "faults"),
    [(1, False, False), (1, True, True), (2, False, True), (3, False, True)],
)
def test_a_schedule_has_room_for_it_or_not(min_isr: int, synced: bool, faults: bool) -> None:
    """Fewer machines than ``min.insync.replicas`` lose power: none if that is 1, unless they have
    all that counts on their disks."""
    drawn = schedule.draw(
        [power.PACKAGE],
        brokers=("broker-1",),
        seed=1,
        time_limit_s=60.0,
        min_isr=min_isr,
        synced=synced,
    )
    assert bool(drawn) is faults
