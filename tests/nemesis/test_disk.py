"""A full disk, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import disk
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply
from tests.nemesis.fake_disks import DISK_BYTES

pytestmark = pytest.mark.usefixtures("impatient")


async def test_full_and_free_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The disk is proved to be full until the heal, which does not start a running broker."""
    applied = await apply(disk, cluster, "disk-full", "leader:x-0", {}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == f"broker-3: 0 bytes left of {DISK_BYTES} that were free"
    assert cluster.free["broker-3"] == 0
    healed = await disk.heal(cluster, applied)
    assert (healed.proved, healed.how) == (True, f"broker-3 runs, {DISK_BYTES} bytes are free")
    assert cluster.log == ["free broker-3"]


async def test_a_broker_that_ended_is_started(cluster: FakeCluster, rng: random.Random) -> None:
    """The disk is freed before a broker that has exited is started."""
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    cluster.down = {"broker-1"}
    assert (await disk.heal(cluster, applied)).proved
    assert cluster.log == ["free broker-1", "start broker-1"]


async def test_a_broker_with_several_directories_is_restarted(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """A broker that runs on may have given a directory up, and uses it again after a restart."""
    cluster.directories = 2
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    healed = await disk.heal(cluster, applied)
    assert healed.proved
    assert healed.how.startswith("broker-1 was killed, and started again, ")
    assert cluster.log == ["free broker-1", "kill broker-1", "start broker-1"]
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    cluster.down, cluster.log = {"broker-1"}, []
    assert (await disk.heal(cluster, applied)).how.startswith("broker-1 was started, ")
    assert cluster.log == ["free broker-1", "start broker-1"]


async def test_a_broker_that_is_ending_is_waited_for(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that exits just after its disk was freed is started as well."""
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    asked = []

    async def is_running(node: str) -> bool:
        asked.append(node)
        if len(asked) == 1:
            cluster.down.add(node)
            return True
        return node not in cluster.down

    monkeypatch.setattr(cluster, "is_running", is_running)
    assert (await disk.heal(cluster, applied)).proved
    assert cluster.log == ["free broker-1", "start broker-1"]


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A disk with free space, one that was full before, or one of a dead node, proves nothing."""
    cluster.immortal = True
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    assert not applied.effect.proved
    assert (await disk.heal(cluster, applied)).proved
    cluster.immortal, cluster.free["broker-1"] = False, 0
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    assert not applied.effect.proved
    cluster.down = set(cluster.brokers)
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")
    assert (await disk.heal(cluster, applied)).proved
    assert cluster.down == set(cluster.brokers), "it struck nobody, so it starts nobody"


async def test_room_that_a_broker_makes_is_filled_too(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Space that a broker frees while its disk is being filled is filled as well."""
    fills = 0

    async def fill_disk(node: str) -> None:
        nonlocal fills
        fills += 1
        cluster.free[node] = 1 << 20 if fills == 1 else 0

    monkeypatch.setattr(cluster, "fill_disk", fill_disk)
    assert (await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)).effect.proved
    assert fills == 2


async def test_one_disk_at_a_time(cluster: FakeCluster, rng: random.Random) -> None:
    """Two targets, or a second fault during the first, are rejected before a disk is filled."""
    with pytest.raises(ValueError, match="not those of broker-1, broker-2"):
        await apply(disk, cluster, "disk-full", ["broker-1", "broker-2"], {}, rng)
    assert set(cluster.free.values()) == {DISK_BYTES}
    await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    with pytest.raises(ValueError, match="that of broker-1 is full"):
        await apply(disk, cluster, "disk-full", ["broker-2"], {}, rng)
    assert cluster.free["broker-2"] == DISK_BYTES


async def test_a_disk_that_stays_full_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with little free space is not healed, even if the broker runs."""
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)

    async def free_a_little(node: str) -> None:
        cluster.free[node] = DISK_BYTES // 4

    monkeypatch.setattr(cluster, "free_disk", free_a_little)
    assert not (await disk.heal(cluster, applied)).proved


@pytest.mark.parametrize("method", ["free_disk", "disk_free_bytes"])
async def test_a_heal_that_failed_can_be_repeated(
    cluster: FakeCluster, rng: random.Random, method: str
) -> None:
    """A heal that failed with an error of the engine can be repeated."""
    applied = await apply(disk, cluster, "disk-full", ["broker-1"], {}, rng)
    cluster.down, cluster.fails[method] = {"broker-1"}, 1
    with pytest.raises(OSError, match="engine"):
        await disk.heal(cluster, applied)
    assert (await disk.heal(cluster, applied)).proved
    assert (cluster.down, cluster.free["broker-1"]) == (set(), DISK_BYTES)


@given(seed=st.integers(0), brokers=st.integers(1, 5), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, brokers: int, session_s: float) -> None:
    """One broker is drawn, for at most a session."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",), session_s)
    fault = disk.draw(random.Random(seed), shape)
    assert fault.fault == "disk-full"
    assert 0.19 <= fault.duration_s / session_s <= 1.01
    roles = ("controller", "leader:x-0")
    assert fault.targets in roles or fault.targets in [[node] for node in shape.brokers]
