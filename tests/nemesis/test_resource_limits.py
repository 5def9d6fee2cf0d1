"""CPU and memory limits, on a cluster in memory."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import resource_limits, verification
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

OPTIONS: dict[str, dict[str, Any]] = {
    "squeeze-cpu": {"cpus": 0.05},
    "squeeze-memory": {"headroom_bytes": 4 << 20},
}
METHODS = {"squeeze-cpu": "limit_cpu", "squeeze-memory": "limit_memory"}


async def test_cpu_is_scarce_and_plenty_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The limit and periods in which the node was throttled prove the fault until it heals."""
    applied = await apply(
        resource_limits, cluster, "squeeze-cpu", "controller", OPTIONS["squeeze-cpu"], rng
    )
    assert (applied.targets, applied.effect.proved) == (("broker-1",), True)
    assert applied.effect.how == "broker-1: limited to 0.05 CPUs, throttled in 1 periods since then"
    assert cluster.limits["broker-1"] == (0.05, 0)
    healed = await resource_limits.heal(cluster, applied)
    assert healed.proved
    assert healed.how == "broker-1 runs with unlimited CPUs, unlimited bytes"
    assert cluster.limits["broker-1"] == (0.0, 0)


async def test_memory_is_scarce_and_plenty_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The limit is the used memory plus the headroom, and is proved when the node meets it."""
    applied = await apply(
        resource_limits, cluster, "squeeze-memory", ["broker-2"], OPTIONS["squeeze-memory"], rng
    )
    assert applied.effect.proved
    assert "reached the limit" in applied.effect.how
    assert cluster.limits["broker-2"] == (0.0, 44 << 20)
    assert (await resource_limits.heal(cluster, applied)).proved
    assert cluster.limits["broker-2"] == (0.0, 0)
    assert cluster.log == ["lift_limits broker-2"]


@pytest.mark.parametrize(
    ("wants", "headroom"), [(300_000, 256 << 10), (20_000, 16 << 10), (500, 64)]
)
async def test_a_limit_is_drawn_closer_until_it_is_met(
    cluster: FakeCluster, rng: random.Random, wants: int, headroom: int
) -> None:
    """The memory limit is lowered until the node meets it."""
    cluster.wants = wants
    applied = await apply(
        resource_limits, cluster, "squeeze-memory", ["broker-2"], OPTIONS["squeeze-memory"], rng
    )
    assert applied.effect.proved
    assert cluster.limits["broker-2"] == (0.0, (40 << 20) + headroom)
    assert (await resource_limits.heal(cluster, applied)).proved


async def test_a_limit_that_was_met_before_proves_nothing(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A limit that was met before, or memory that is nearly used up, proves nothing."""
    cluster.met["broker-2"], cluster.wants = 7, 0
    applied = await apply(
        resource_limits, cluster, "squeeze-memory", ["broker-2"], {"headroom_bytes": 0}, rng
    )
    assert not applied.effect.proved
    assert applied.effect.how.endswith("bytes, and reached the limit 0 times since then")


async def test_who_is_killed_gets_no_limit_of_its_own_absence(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that the OOM killer ends gets no further limit, even if the cause is known late."""
    limits: list[int] = []

    async def deadly(node: str, bytes_: int) -> None:
        limits.append(bytes_)
        cluster.limits[node] = (0.0, bytes_)
        cluster.down.add(node)

    slept: list[float] = []

    async def late(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > verification.TRIES:
            cluster.oom_killed.add("broker-1")

    monkeypatch.setattr(cluster, "limit_memory", deadly)
    monkeypatch.setattr(asyncio, "sleep", late)
    cluster.wants = 0
    applied = await apply(
        resource_limits, cluster, "squeeze-memory", ["broker-1"], OPTIONS["squeeze-memory"], rng
    )
    assert applied.effect.proved
    assert limits == [44 << 20]


async def test_who_was_killed_for_memory_is_started(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The OOM killer proves the fault, and the node is started once its limit is removed."""

    async def deadly(node: str, bytes_: int) -> None:
        cluster.limits[node] = (0.0, bytes_)
        cluster.down.add(node)
        cluster.oom_killed.add(node)

    monkeypatch.setattr(cluster, "limit_memory", deadly)
    applied = await apply(
        resource_limits, cluster, "squeeze-memory", ["broker-1"], OPTIONS["squeeze-memory"], rng
    )
    assert applied.effect.proved
    assert applied.effect.how.endswith("the OOM killer killed the broker")
    assert (await resource_limits.heal(cluster, applied)).proved
    assert cluster.log == ["lift_limits broker-1", "start broker-1"]


@pytest.mark.parametrize("fault", resource_limits.FAULTS)
async def test_without_a_limit_it_is_not_proved(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """An engine that accepts a limit and does not set it proves nothing."""

    async def nothing(node: str, limit: float) -> None:
        pass

    monkeypatch.setattr(cluster, METHODS[fault], nothing)
    applied = await apply(resource_limits, cluster, fault, ["broker-1"], OPTIONS[fault], rng)
    assert not applied.effect.proved


async def test_a_limit_that_does_not_bite_is_not_proved(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A node that is not throttled, has memory left, or was killed once before, proves nothing."""
    cluster.immortal = True
    applied = await apply(
        resource_limits, cluster, "squeeze-cpu", ["broker-1"], OPTIONS["squeeze-cpu"], rng
    )
    assert not applied.effect.proved
    roomy = {"headroom_bytes": 40 << 20}
    cluster.wants = 0
    cluster.oom_killed.add("broker-2")
    for node in ("broker-2", "broker-3"):
        applied = await apply(resource_limits, cluster, "squeeze-memory", [node], roomy, rng)
        assert not applied.effect.proved


async def test_nobody_to_squeeze(cluster: FakeCluster, rng: random.Random) -> None:
    """If all nodes are down, none is limited, and none is started by the heal."""
    cluster.down = set(cluster.brokers)
    applied = await apply(
        resource_limits, cluster, "squeeze-cpu", ["broker-1"], OPTIONS["squeeze-cpu"], rng
    )
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")
    assert (await resource_limits.heal(cluster, applied)).how == "no target was limited"
    assert cluster.down == set(cluster.brokers)


@pytest.mark.parametrize("fault", resource_limits.FAULTS)
async def test_a_limit_that_stays_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A limit that the engine still reports is not healed."""
    applied = await apply(resource_limits, cluster, fault, ["broker-1"], OPTIONS[fault], rng)

    async def nothing(node: str) -> None:
        pass

    with monkeypatch.context() as deaf:
        deaf.setattr(cluster, "lift_limits", nothing)
        assert not (await resource_limits.heal(cluster, applied)).proved
    assert (await resource_limits.heal(cluster, applied)).proved


async def test_a_heal_that_failed_can_be_repeated(cluster: FakeCluster, rng: random.Random) -> None:
    """A heal that failed with an error of the engine can be repeated."""
    both = ["broker-1", "broker-2"]
    applied = await apply(
        resource_limits, cluster, "squeeze-cpu", both, OPTIONS["squeeze-cpu"], rng
    )
    cluster.down, cluster.fails["lift_limits"] = {"broker-2"}, 1
    with pytest.raises(OSError, match="engine"):
        await resource_limits.heal(cluster, applied)
    assert (await resource_limits.heal(cluster, applied)).proved
    assert cluster.down == set()
    assert set(cluster.limits.values()) == {(0.0, 0)}


@given(seed=st.integers(0), brokers=st.integers(1, 5), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, brokers: int, session_s: float) -> None:
    """One broker is drawn, with a few percent of a CPU or with a few MiB in whole pages."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",), session_s)
    fault = resource_limits.draw(random.Random(seed), shape)
    assert 0.49 <= fault.duration_s / session_s <= 2.51
    assert fault.alone
    if fault.fault == "squeeze-cpu":
        assert 0.02 <= fault.options["cpus"] <= 0.1
    else:
        assert fault.fault == "squeeze-memory"
        assert 2 << 20 <= fault.options["headroom_bytes"] <= 8 << 20
        assert fault.options["headroom_bytes"] % 4096 == 0
    roles = ("controller", "leader:x-0")
    assert fault.targets in roles or fault.targets in [[node] for node in shape.brokers]
