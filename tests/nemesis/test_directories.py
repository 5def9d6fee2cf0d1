"""A failed data directory, on a cluster in memory."""

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import directories
from nemesis.draws import ClusterShape
from nemesis.package import Environment
from nemesis.runner import Nemesis
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

SECOND = {"directory": 2}


@pytest.fixture
def cluster() -> FakeCluster:
    """A cluster whose brokers have two data directories each."""
    cluster = FakeCluster()
    cluster.directories = 2
    return cluster


async def test_a_broker_that_runs_is_restarted(cluster: FakeCluster, rng: random.Random) -> None:
    """Failed operations prove the fault; a broker uses a repaired directory after a restart."""
    applied = await apply(directories, cluster, "failed-directory", "leader:x-0", SECOND, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "broker-3: 3 operations in directory 2 failed; the broker runs"
    assert cluster.failed == {("broker-3", 2): 3}
    healed = await directories.heal(cluster, applied)
    assert healed.proved
    assert healed.how == "broker-3 was killed, and started again, directory 2 works"
    assert cluster.log == ["repair 2 of broker-3", "kill broker-3", "start broker-3"]


async def test_a_broker_that_ended_is_started(cluster: FakeCluster, rng: random.Random) -> None:
    """The directory is repaired before a broker that has exited is started."""
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    cluster.down = {"broker-1"}
    effect = await directories.measure(cluster, applied)
    assert effect.how.endswith("the broker has ended")
    assert (await directories.heal(cluster, applied)).proved
    assert cluster.log == ["repair 2 of broker-1", "start broker-1"]


async def test_a_broker_that_is_kept_down_is_not_started(
    cluster: FakeCluster, rng: random.Random
) -> None:
    """While another fault keeps the broker down, the heal only repairs the directory."""
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    cluster.down = {"broker-1"}
    kept = dataclasses.replace(applied, kept_down=frozenset({"broker-1"}))
    healed = await directories.heal(cluster, kept)
    assert healed.proved
    assert healed.how == "broker-1 is kept down by another fault, directory 2 works"
    assert (cluster.down, cluster.failed) == ({"broker-1"}, {})


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A directory that a probe can use does not fail, and a dead broker proves nothing."""
    cluster.immortal = True
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    assert not applied.effect.proved
    how = "broker-1: no operation used directory 2; for a probe it works"
    assert applied.effect.how == how
    cluster.immortal = False
    assert (await directories.heal(cluster, applied)).proved
    cluster.down = set(cluster.brokers)
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")
    assert (await directories.heal(cluster, applied)).how == "no directory failed"
    assert cluster.down == set(cluster.brokers)


async def test_a_probe_proves_it(cluster: FakeCluster, rng: random.Random) -> None:
    """A directory that the broker does not use fails for a probe."""
    cluster.unused = True
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    assert applied.effect.proved
    how = "broker-1: no operation used directory 2; for a probe it fails"
    assert applied.effect.how == how


async def test_a_late_operation_proves_it(cluster: FakeCluster, rng: random.Random) -> None:
    """The first operation in the directory may come a while after it has failed."""
    cluster.immortal = True
    applied = await directories.strike(
        cluster, "failed-directory", ["broker-1"], directories.DirectoryOptions(directory=1), rng
    )
    counts = iter((0, 0, 1))

    async def failed_operations(node: str, number: int) -> int:
        return next(counts)

    cluster.failed_operations = failed_operations  # type: ignore[method-assign]
    effect = await directories.measure(cluster, applied)
    assert effect.how == "broker-1: 1 operation in directory 1 failed; the broker runs"


async def test_one_directory_at_a_time(cluster: FakeCluster, rng: random.Random) -> None:
    """Two targets, or a second fault during the first, are rejected before a directory fails."""
    two = ["broker-1", "broker-2"]
    with pytest.raises(ValueError, match="not those of broker-1, broker-2"):
        await apply(directories, cluster, "failed-directory", two, SECOND, rng)
    assert cluster.failed == {}
    await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)
    for other in (["broker-2"], ["broker-1"]):
        with pytest.raises(ValueError, match=r"that of broker-1 fails \(2\)"):
            await apply(directories, cluster, "failed-directory", other, {"directory": 1}, rng)
    assert cluster.failed == {("broker-1", 2): 3}


async def test_a_directory_that_still_fails_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heal is not proved while operations fail, even if the broker runs."""
    applied = await apply(directories, cluster, "failed-directory", ["broker-1"], SECOND, rng)

    async def repair_directory(node: str, number: int) -> None:
        """Repair nothing."""

    monkeypatch.setattr(cluster, "repair_directory", repair_directory)
    healed = await directories.heal(cluster, applied)
    assert (healed.proved, healed.how.endswith("directory 2 fails")) == (False, True)


async def test_what_is_left_is_cleaned(cluster: FakeCluster, rng: random.Random) -> None:
    """At the end of a run every failed directory is repaired, and only its broker restarted."""
    nemesis = Nemesis(cluster, (directories.PACKAGE,), rng)
    await nemesis.heal_all()
    assert cluster.log == []
    cluster.failed = {("broker-1", 2): 5, ("broker-2", 1): 1}
    cluster.down = {"broker-2"}
    await nemesis.heal_all()
    assert cluster.log == [
        *("repair 2 of broker-1", "kill broker-1", "start broker-1"),
        "repair 1 of broker-2",  # the recovery of the cluster starts what is down
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "directory = 2: the option data_directories is 1"),
        ({"data_directories": 2}, None),
    ],
)
def test_a_directory_that_no_broker_has_is_refused(
    options: dict[str, Any], why: str | None
) -> None:
    """A schedule may name only directories that brokers have."""
    [fault] = directories.PACKAGE.faults
    there = Environment(with_zookeeper(3), FakeCluster, "simulated", options)
    assert fault.refusal(["broker-1"], SECOND, there) == why


@given(seed=st.integers(0), brokers=st.integers(1, 5), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, brokers: int, session_s: float) -> None:
    """One directory of one broker is drawn, for at most three sessions."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",), session_s, directories=3)
    fault = directories.draw(random.Random(seed), shape)
    assert fault.fault == "failed-directory"
    assert 0.19 <= fault.duration_s / session_s <= 3.01
    assert fault.options["directory"] in (1, 2, 3)
    roles = ("controller", "leader:x-0")
    assert fault.targets in roles or fault.targets in [[node] for node in shape.brokers]


def test_every_directory_is_drawn_as_often_as_the_others() -> None:
    """Which directory fails does not depend on what it contains."""
    shape = ClusterShape(with_zookeeper(3), ("x-0",), 2.0, directories=2)
    rng = random.Random(1)
    drawn = [directories.draw(rng, shape).options["directory"] for _ in range(400)]
    assert 150 < drawn.count(1) < 250


def test_it_needs_several_directories() -> None:
    """A broker with one directory ends when that fails, which is another fault."""
    assert not directories.PACKAGE.room(ClusterShape(with_zookeeper(3)))
    assert directories.PACKAGE.room(ClusterShape(with_zookeeper(3), directories=2))
