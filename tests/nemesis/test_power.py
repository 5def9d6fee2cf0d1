"""Power losses, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import Layout, with_zookeeper
from model.roles import ZOOKEEPER
from nemesis import power, schedule
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")


async def test_off_and_on_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The machine is proved to be off until the heal, after which the broker has registered."""
    applied = await apply(power, cluster, "power-loss", "leader:x-0", {"after": 5}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "broker-3: off, 100 bytes were not synced"
    assert cluster.unpowered == {"broker-3"}
    assert cluster.log == ["off broker-3 after 5"]
    healed = await power.heal(cluster, applied)
    assert healed.proved
    assert healed.how == "broker-3 has power and runs, every replica is in sync"
    assert (cluster.unpowered, cluster.down) == (set(), set())


async def test_it_may_wait_for_a_rename(cluster: FakeCluster, rng: random.Random) -> None:
    """The power may go right before a file is renamed whose name has the given ending."""
    await apply(power, cluster, "power-loss", "leader:x-0", {"renaming": ".swap"}, rng)
    assert cluster.log == ["off broker-3 renaming .swap"]


async def test_zookeeper_can_be_struck(cluster: FakeCluster, rng: random.Random) -> None:
    """ZooKeeper, which is in no ISR and has no registration, can lose power."""
    applied = await apply(power, cluster, "power-loss", [ZOOKEEPER], {}, rng)
    assert (applied.targets, applied.effect.proved) == ((ZOOKEEPER,), True)
    assert (await power.heal(cluster, applied)).proved


async def test_a_cluster_with_replicas_out_of_sync_is_spared(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """If a replica is out of sync, no machine loses power, and nothing is proved."""
    cluster.whole = False
    applied = await apply(power, cluster, "power-loss", ["broker-1"], {}, rng)
    assert (applied.targets, applied.effect.proved, cluster.unpowered) == ((), False, set())
    assert (await power.heal(cluster, applied)).proved


async def test_the_only_one_in_sync_is_spared(cluster: FakeCluster, rng: random.Random) -> None:
    """A broker that is the only member of an ISR is replaced by another one, if there is one."""
    cluster.isrs = {"x-0": cluster.brokers, "y-0": ("broker-1",)}
    applied = await apply(power, cluster, "power-loss", ["broker-1"], {}, rng)
    assert applied.effect.proved
    assert applied.targets[0] in ("broker-2", "broker-3")
    assert (await power.heal(cluster, applied)).proved
    cluster.isrs = {f"{node}-0": (node,) for node in cluster.brokers}
    applied = await apply(power, cluster, "power-loss", ["broker-1"], {}, rng)
    assert (applied.targets, applied.effect.proved, cluster.unpowered) == ((), False, set())


async def test_several_only_when_nobody_is_spared(cluster: FakeCluster, rng: random.Random) -> None:
    """Several machines lose power only with ``spare = false``."""
    both = ["broker-1", "broker-2"]
    with pytest.raises(ValueError, match="only one machine may lose power, not broker-1, broker-2"):
        await apply(power, cluster, "power-loss", both, {}, rng)
    assert cluster.unpowered == set()
    cluster.whole = False
    applied = await apply(power, cluster, "power-loss", both, {"spare": False}, rng)
    assert (applied.effect.proved, cluster.unpowered) == (True, set(both))
    assert (await power.heal(cluster, applied)).proved, "nothing else is waited for"


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A machine that still answers has power, which proves nothing."""
    cluster.immortal = True
    applied = await apply(power, cluster, "power-loss", ["broker-1"], {}, rng)
    assert not applied.effect.proved
    assert applied.effect.how == "broker-1: still answers"


async def test_its_former_session_must_be_over(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heal is proved only after the former session has ended, and can be repeated."""
    applied = await apply(power, cluster, "power-loss", ["broker-2"], {}, rng)

    async def registration(node: str) -> int | None:
        return 1

    with monkeypatch.context() as patch:
        patch.setattr(cluster, "registration", registration)
        assert not (await power.heal(cluster, applied)).proved
    assert (await power.heal(cluster, applied)).proved


@given(seed=st.integers(0), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, session_s: float) -> None:
    """One machine is drawn, to be alone, and ``spare`` is true unless brokers sync each record."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",), session_s)
    fault = power.draw(random.Random(seed), shape)
    assert fault.alone
    assert fault.options["spare"] is True
    synced = ClusterShape(shape.layout, shape.keys, session_s, synced=True)
    assert power.draw(random.Random(seed), synced).options["spare"] is False
    assert 0 <= fault.options.get("after", 0) <= power.OPERATIONS_MAX
    assert 0.19 <= fault.duration_s / session_s <= 2.01


def test_some_draws_wait_for_a_rename() -> None:
    """Each kind of rename is drawn for machines of brokers, and none for those of ZooKeeper."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",))
    drawn = [power.draw(random.Random(seed), shape) for seed in range(300)]
    waiting = [fault for fault in drawn if "renaming" in fault.options]
    assert {fault.options["renaming"] for fault in waiting} == set(power.RENAMES)
    assert all(0 <= fault.options["after"] <= power.AFTER_RENAME_MAX for fault in waiting)
    assert not any(ZOOKEEPER in str(fault.targets) for fault in waiting)
    servers = ClusterShape(Layout(brokers=(), zookeepers=("zookeeper-1", "zookeeper-2")))
    assert not any(
        "renaming" in power.draw(random.Random(seed), servers).options for seed in range(100)
    )


@pytest.mark.parametrize(
    ("min_isr", "synced", "faults"),
    [(1, False, False), (1, True, True), (2, False, True), (3, False, True)],
)
def test_a_schedule_has_room_for_it_or_not(min_isr: int, synced: bool, faults: bool) -> None:
    """A power loss is drawn only if one machine is fewer than ``min.insync.replicas``.

    It is also drawn if brokers sync each record.
    """
    drawn = schedule.draw(
        [power.PACKAGE],
        layout=with_zookeeper(1),
        seed=1,
        time_limit_s=60.0,
        min_isr=min_isr,
        synced=synced,
    )
    assert bool(drawn) is faults
