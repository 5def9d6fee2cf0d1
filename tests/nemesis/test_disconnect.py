"""A node without a network, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import disconnect
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")


async def test_off_and_on_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The target is on no network, which is proved, until it heals and answers."""
    applied = await apply(disconnect, cluster, "disconnect", "leader:x-0", {}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert cluster.off == {"broker-3"}
    assert (await disconnect.heal(cluster, applied)).proved
    assert cluster.off == set()


async def test_zookeeper_is_disconnected(cluster: FakeCluster, rng: random.Random) -> None:
    """ZooKeeper can be disconnected, too."""
    applied = await apply(disconnect, cluster, "disconnect", ["zookeeper"], {}, rng)
    assert applied.effect.proved
    assert (await disconnect.heal(cluster, applied)).proved


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A node that is still reachable, or is down, proves nothing."""
    cluster.immortal = True
    applied = await apply(disconnect, cluster, "disconnect", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "broker-1: still reachable")
    cluster.down = set(cluster.brokers)
    applied = await apply(disconnect, cluster, "disconnect", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")


async def test_who_answers_no_more_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that stays away, or a node that stays silent, is not healed."""
    applied = await apply(disconnect, cluster, "disconnect", ["broker-1"], {}, rng)

    async def nothing(node: str) -> None:
        pass

    with monkeypatch.context() as deaf:
        deaf.setattr(cluster, "reconnect", nothing)
        healed = await disconnect.heal(cluster, applied)
    assert (healed.proved, healed.how) == (False, "still without a network: broker-1")

    async def silent(source: str, target: str) -> None:
        return None

    monkeypatch.setattr(cluster, "is_cut", silent)
    healed = await disconnect.heal(cluster, applied)
    assert (healed.proved, healed.how) == (
        False,
        "on a network again, but not answering: broker-1",
    )


async def test_healed_whatever_became_of_the_node(cluster: FakeCluster, rng: random.Random) -> None:
    """A node that died, was paused or is cut off meanwhile is healed without an answer."""
    applied = await apply(disconnect, cluster, "disconnect", ["broker-1", "broker-2"], {}, rng)
    cluster.down, cluster.paused = {"broker-1"}, {"broker-2"}
    assert (await disconnect.heal(cluster, applied)).proved
    assert cluster.down == {"broker-1"}, "starting it is for the fault that killed it"
    cluster.down, cluster.paused = set(), set()
    cluster.cuts["clients", "broker-1"] = 1
    assert (await disconnect.heal(cluster, applied)).proved


async def test_a_heal_that_failed_can_be_repeated(cluster: FakeCluster, rng: random.Random) -> None:
    """A heal that failed with an error of the engine can be repeated."""
    applied = await apply(disconnect, cluster, "disconnect", ["broker-1"], {}, rng)
    cluster.fails["reconnect"] = 1
    with pytest.raises(OSError, match="engine"):
        await disconnect.heal(cluster, applied)
    assert (await disconnect.heal(cluster, applied)).proved
    assert cluster.off == set()


@given(seed=st.integers(0), brokers=st.integers(1, 5), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, brokers: int, session_s: float) -> None:
    """A fault is clearly shorter or longer than a session; ZooKeeper is drawn to be alone."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",), session_s)
    fault = disconnect.draw(random.Random(seed), shape)
    assert fault.fault == "disconnect"
    sessions = fault.duration_s / session_s
    if fault.options["session"] == "longer":
        assert 1.19 <= sessions <= 2.51
    else:
        assert 0.09 <= sessions <= 0.41
    assert fault.alone is (fault.targets == ["zookeeper"])
    if isinstance(fault.targets, list):
        assert len(fault.targets) == 1
        assert fault.targets[0] in (*shape.brokers, "zookeeper")
    else:
        assert fault.targets in ("controller", "leader:x-0")


def test_zookeeper_is_struck_seldom() -> None:
    """Mostly a broker is drawn, by name or role, and ZooKeeper rarely."""
    rng = random.Random(4)
    drawn = [disconnect.draw(rng, ClusterShape(with_zookeeper(2), ("x-0",))) for _ in range(200)]
    struck = [str(fault.targets) for fault in drawn]
    assert 5 <= struck.count("['zookeeper']") <= 40
    assert {"controller", "leader:x-0", "['broker-1']", "['broker-2']"} < set(struck)
