"""The interface of the nemesis to the interpreter."""

import asyncio
import random
from typing import Any

import pytest

from model.op import NEMESIS, Op
from nemesis import (
    clock,
    directories,
    disconnect,
    disk,
    kill,
    packets,
    partition,
    pause,
    power,
    resource_limits,
    restart,
    slow_disk,
)
from nemesis.runner import Nemesis
from tests.nemesis.conftest import FakeCluster
from tests.nemesis.fake_disks import DISK_BYTES

PACKAGES = (kill.PACKAGE, pause.PACKAGE, restart.PACKAGE, partition.PACKAGE)
OF_CONTAINERS = (disconnect.PACKAGE, disk.PACKAGE, resource_limits.PACKAGE, packets.PACKAGE)
OF_WORLDS = (power.PACKAGE, slow_disk.PACKAGE, clock.PACKAGE, directories.PACKAGE)


def asked(
    fault: str, phase: str, targets: Any, number: int = 1, options: dict[str, Any] | None = None
) -> Op:
    value = {"id": number, "phase": phase, "targets": targets, "options": options or {}}
    return Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f=fault, value=value)


@pytest.fixture
def nemesis(cluster: FakeCluster, rng: random.Random) -> Nemesis:
    return Nemesis(cluster, PACKAGES, rng)


async def test_apply_and_heal(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """The completions are info, with resolved targets and measured effects."""
    done = await nemesis.invoke(asked("kill", "apply", "controller"))
    assert (done.type, done.f, done.process) == ("info", "kill", NEMESIS)
    assert done.value["targets"] == ["broker-1"]
    assert done.value["effect"]["proved"] is True
    assert cluster.down == {"broker-1"}
    cluster.controls = "broker-2"
    healed = await nemesis.invoke(asked("kill", "heal", ["broker-1"]))
    assert healed.value["targets"] == ["broker-1"]
    assert healed.value["effect"]["proved"] is True
    assert cluster.down == set()


async def test_a_state_is_read_from_the_cluster(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """The table of a fault's option ``once`` is compared with the cluster's current state."""
    assert await nemesis.is_reached({"key": "x-0", "leader": "broker-3"})
    cluster.leaders["x-0"] = "broker-1"
    assert not await nemesis.is_reached({"key": "x-0", "leader": "broker-3"})


async def test_options_reach_the_fault(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """The options of the schedule reach the fault."""
    await nemesis.invoke(
        asked("partition-one-way", "apply", ["broker-1"], options={"from": ["zookeeper"]})
    )
    assert +cluster.cuts == {("broker-1", "zookeeper"): 1}


async def test_heal_all_mends_everything(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """Faults that were never healed, and what a failed one has left, are healed at the end."""
    await nemesis.invoke(asked("kill", "apply", ["broker-1"], 1))
    await nemesis.invoke(asked("pause", "apply", ["broker-2"], 2))
    await nemesis.invoke(asked("partition-one", "apply", ["broker-3"], 3))
    cluster.cuts["broker-1", "zookeeper"] = 2
    cluster.paused.add("zookeeper")
    await nemesis.heal_all()
    assert (cluster.down, cluster.paused, +cluster.cuts) == (set(), set(), {})


@pytest.mark.parametrize(
    ("fault", "breaks", "options"),
    [
        ("disconnect", "disconnect", {}),
        ("disk-full", "fill_disk", {}),
        ("squeeze-cpu", "limit_cpu", {"cpus": 0.05}),
        ("squeeze-memory", "limit_memory", {"headroom_bytes": 4 << 20}),
        ("drop-packets", "drop_packets", {"share": 0.2}),
        ("power-loss", "power_off", {}),
        ("slow-disk", "slow_disk", {"seconds": 0.005}),
        ("failed-directory", "fail_directory", {"directory": 1}),
        ("clock-skew", "drift_clock", {"rate": 2.0}),
        ("clock-jump", "jump_clock", {"seconds": 9.0}),
    ],
)
async def test_heal_all_mends_what_was_left_half_broken(
    cluster: FakeCluster, rng: random.Random, fault: str, breaks: str, options: dict[str, Any]
) -> None:
    """A fault that failed halfway through its application is healed at the end."""
    nemesis = Nemesis(cluster, (*OF_CONTAINERS, *OF_WORLDS), rng)
    cluster.fails[breaks] = 1
    with pytest.raises(OSError, match=breaks):
        await nemesis.invoke(asked(fault, "apply", ["broker-1"], options=options))
    await nemesis.heal_all()
    assert (cluster.off, cluster.dropped, cluster.unpowered) == (set(), {}, set())
    assert (set(cluster.disk_s.values()), cluster.failed) == ({0.0001}, {})
    assert (set(cluster.ahead_s.values()), set(cluster.rates.values())) == ({0.0}, {1.0})
    assert set(cluster.free.values()) == {DISK_BYTES}
    assert set(cluster.limits.values()) == {(0.0, 0)}


async def test_an_engine_that_fails_once_does_not_spare_the_rest(
    cluster: FakeCluster, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that cannot be healed does not prevent the healing of the others."""
    nemesis = Nemesis(cluster, (*OF_CONTAINERS, pause.PACKAGE), rng)
    cluster.off, cluster.free["broker-2"], cluster.paused = {"broker-2"}, 0, {"zookeeper"}
    cluster.fails["reconnect"] = 1
    await nemesis.heal_all()
    assert (cluster.off, cluster.free["broker-2"], cluster.paused) == (set(), DISK_BYTES, set())
    assert "the network of broker-1 could not be healed" in caplog.text


async def test_failed_mend_does_not_spare_the_rest(
    nemesis: Nemesis, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """If one node cannot be started, the links are healed nevertheless."""
    await nemesis.invoke(asked("partition-one", "apply", ["broker-3"], 1))
    await nemesis.invoke(asked("kill", "apply", ["broker-1"], 2))

    async def broken(node: str) -> None:
        raise OSError("disk full\nof old logs")

    cluster.start_node = broken  # type: ignore[method-assign]
    await nemesis.heal_all()
    assert not +cluster.cuts
    [told] = caplog.text.splitlines()
    assert told.endswith("fault 2 (kill) could not be healed: OSError: disk full"), (
        "how is for debugging"
    )


async def test_healing_what_is_whole_changes_nothing(nemesis: Nemesis) -> None:
    """A heal of a fault that is not active changes nothing."""
    done = await nemesis.invoke(asked("kill", "heal", ["broker-1"]))
    assert done.value["effect"] == {"proved": False, "how": "the fault is not active"}


async def test_unknown_fault(nemesis: Nemesis) -> None:
    """A fault that no package has is an error."""
    with pytest.raises(ValueError, match="no package has the fault flood"):
        await nemesis.invoke(asked("flood", "apply", []))


def test_cluster_must_offer_what_is_needed(rng: random.Random) -> None:
    """A package that the cluster cannot serve is rejected at once."""
    with pytest.raises(ValueError, match="kill needs a cluster with CanKill"):
        Nemesis(object(), PACKAGES, rng)


async def test_a_mend_that_is_not_proved_can_be_asked_for_again(
    nemesis: Nemesis, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault stays active until its heal is proved."""
    await nemesis.invoke(asked("pause", "apply", ["broker-2"]))
    with monkeypatch.context() as deaf:
        deaf.setattr(cluster, "resume", lambda node: asyncio.sleep(0))
        deaf.setattr(pause, "SETTLE_S", 0.01)
        done = await nemesis.invoke(asked("pause", "heal", ["broker-2"]))
    assert done.value["effect"]["proved"] is False
    done = await nemesis.invoke(asked("pause", "heal", ["broker-2"]))
    assert done.value["effect"] == {"proved": True, "how": "broker-2: resumed"}
    assert cluster.paused == set()


async def test_a_fault_that_is_only_measured_keeps_no_state(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that is applied while the heal of an equal one is measured is healed for itself."""
    nemesis = Nemesis(cluster, OF_CONTAINERS, rng)
    await nemesis.invoke(asked("disconnect", "apply", ["broker-1"], 1))
    measured = asyncio.Event()
    measure = cluster.is_disconnected

    async def slow(node: str) -> bool:
        await measured.wait()
        return await measure(node)

    async def until_acted(op: Op) -> asyncio.Task[Op]:
        acted = asyncio.Event()
        task = asyncio.create_task(nemesis.invoke(op, acted.set))
        await acted.wait()
        return task

    monkeypatch.setattr(cluster, "is_disconnected", slow)
    healing = await until_acted(asked("disconnect", "heal", ["broker-1"], 1))
    await asyncio.sleep(0)
    applying = await until_acted(asked("disconnect", "apply", ["broker-1"], 2))
    assert cluster.off == {"broker-1"}
    healing_too = await until_acted(asked("disconnect", "heal", ["broker-1"], 2))
    assert cluster.off == set()
    measured.set()
    await asyncio.gather(healing, applying, healing_too)
