"""kill, pause, restart and zookeeper on a cluster in memory."""

import random

import pytest

from model.layout import with_kraft, with_zookeeper
from nemesis import kill, pause, restart, zookeeper
from nemesis.draws import ClusterShape
from nemesis.package import Package
from tests.nemesis.conftest import FakeCluster, apply

SHAPE = ClusterShape(with_zookeeper(3), ("x-0",), session_timeout_s=2.0)


async def test_kill_and_start(cluster: FakeCluster, rng: random.Random) -> None:
    """The target is proved to be killed, and is started again."""
    applied = await apply(kill, cluster, "kill", "leader:x-0", {}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert cluster.down == {"broker-3"}
    assert (await kill.heal(cluster, applied)).proved
    assert cluster.down == set()


async def test_kill_without_effect_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A node that is still up, or was down before, proves nothing."""
    cluster.immortal = True
    applied = await apply(kill, cluster, "kill", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "still up: ['broker-1']")
    cluster.down = set(cluster.brokers)
    applied = await apply(kill, cluster, "kill", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")


async def test_pause_and_resume(cluster: FakeCluster, rng: random.Random) -> None:
    """The target is proved to be stopped, and is resumed unless it has died meanwhile."""
    applied = await apply(pause, cluster, "pause", ["broker-1", "broker-2"], {}, rng)
    assert applied.effect.proved
    assert cluster.paused == {"broker-1", "broker-2"}
    cluster.paused.discard("broker-1")
    cluster.down.add("broker-1")
    assert (await pause.heal(cluster, applied)).proved
    assert cluster.paused == set()


async def test_pause_without_effect_is_not_proved(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that keeps running proves nothing."""
    monkeypatch.setattr(pause, "SETTLE_S", 0.01)
    cluster.immortal = True
    applied = await apply(pause, cluster, "pause", ["broker-1"], {}, rng)
    assert not applied.effect.proved


async def test_restart_is_proved_by_exit_status_0(cluster: FakeCluster, rng: random.Random) -> None:
    """A clean stop proves the fault, and any other exit does not."""
    applied = await apply(restart, cluster, "restart", "controller", {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (True, "broker-1: exit status 0")
    assert cluster.down == {"broker-1"}
    assert (await restart.heal(cluster, applied)).proved
    assert cluster.down == set()
    cluster.exit_status = -9
    applied = await apply(restart, cluster, "restart", ["broker-2"], {}, rng)
    assert not applied.effect.proved


async def test_rolling_restart_waits_between_brokers(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """One broker is down at a time, and the cluster has time to recover before the next one."""
    applied = await apply(restart, cluster, "restart-rolling", ["broker-2", "broker-1"], {}, rng)
    assert applied.effect.proved
    assert cluster.log == [
        *("stop broker-2", "start broker-2", "recover"),
        *("stop broker-1", "start broker-1", "recover"),
    ]


@pytest.mark.parametrize("fault", zookeeper.FAULTS)
async def test_zookeeper_goes_and_comes_back(
    cluster: FakeCluster, rng: random.Random, fault: str
) -> None:
    """ZooKeeper is killed or paused, and is back after the heal."""
    applied = await apply(zookeeper, cluster, fault, ["zookeeper"], {}, rng)
    assert (applied.targets, applied.effect.proved) == (("zookeeper",), True)
    assert cluster.down | cluster.paused == {"zookeeper"}
    await zookeeper.PACKAGE.heal(cluster, applied)
    assert cluster.down | cluster.paused == set()


@pytest.mark.parametrize(
    "package", [kill.PACKAGE, pause.PACKAGE, restart.PACKAGE, zookeeper.PACKAGE]
)
def test_draws_are_faults_of_the_package(package: Package) -> None:
    """Exactly the faults of the package are drawn, and never for more than 3 sessions."""
    rng = random.Random(3)
    assert package.draw is not None
    drawn = [package.draw(rng, SHAPE) for _ in range(200)]
    assert {fault.fault for fault in drawn} == set(package.names)
    assert all(0 <= fault.duration_s <= 6.0 for fault in drawn)


def test_pauses_are_longer_and_shorter_than_the_session() -> None:
    """A pause is clearly longer or shorter than the session, as its option says."""
    rng = random.Random(3)
    drawn = [pause.draw(rng, SHAPE) for _ in range(100)]
    longer = [fault.duration_s for fault in drawn if fault.options["session"] == "longer"]
    shorter = [fault.duration_s for fault in drawn if fault.options["session"] == "shorter"]
    assert min(longer) >= 3.0
    assert max(shorter) <= 1.4


def test_zookeeper_is_drawn_alone() -> None:
    """The only server is always the target, and a cluster without ZooKeeper does not suit."""
    drawn = [zookeeper.draw(random.Random(seed), SHAPE) for seed in range(50)]
    assert {tuple(fault.targets) for fault in drawn} == {("zookeeper",)}
    assert {fault.fault for fault in drawn} == set(zookeeper.FAULTS)
    assert all(fault.alone for fault in drawn)
    assert zookeeper.PACKAGE.suits(SHAPE.layout)
    assert not zookeeper.PACKAGE.suits(with_kraft(3, 3, combined=True))


def test_one_a_majority_or_all_servers_of_an_ensemble_are_drawn() -> None:
    """Of five servers one, three or all are away, each has its share, and so has each role."""
    shape = ClusterShape(with_zookeeper(3, 5, observers=1))
    drawn = [zookeeper.draw(random.Random(seed), shape).targets for seed in range(200)]
    lists = [targets for targets in drawn if isinstance(targets, list)]
    assert {len(targets) for targets in lists} == {1, 3, 5}
    assert {server for targets in lists for server in targets} == set(shape.layout.zookeepers)
    named = {targets for targets in drawn if isinstance(targets, str)}
    assert named == {"zk-leader", "zk-follower", "zk-observer"}
    rule = zookeeper.PACKAGE.faults[0].targets
    assert all(rule.refusal(targets, shape.layout) is None for targets in drawn)


def test_one_broker_is_enough() -> None:
    """A single broker can be killed and restarted; no fault is drawn that needs more."""
    rng, lone = random.Random(3), ClusterShape(with_zookeeper(1))
    for draw in (kill.draw, restart.draw):
        assert not any(draw(rng, lone).alone for _ in range(100))
