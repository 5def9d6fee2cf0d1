"""Dropped packets, on a cluster in memory."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import packets
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")

OPTIONS = {"share": 0.2}


async def test_dropped_and_passed_again(cluster: FakeCluster, rng: random.Random) -> None:
    """The rule's counter proves the fault, and the rule is gone after the heal."""
    applied = await apply(packets, cluster, "drop-packets", "controller", OPTIONS, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-1",), True)
    assert applied.effect.how == "broker-1: 3 packets dropped"
    assert (await packets.heal(cluster, applied)).proved
    assert cluster.dropped == {}


async def test_the_first_loss_is_waited_for(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault waits for the first loss, which a small share of little traffic delays."""
    counts = iter([0, 0, 1])

    async def packets_dropped(node: str) -> int:
        return next(counts)

    monkeypatch.setattr(cluster, "packets_dropped", packets_dropped)
    applied = await apply(packets, cluster, "drop-packets", ["broker-1"], OPTIONS, rng)
    assert applied.effect.proved


async def test_where_nobody_is_at_work_probes_are(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without other traffic, probes are sent until one of their packets is dropped."""
    probes: list[str] = []
    is_cut = cluster.is_cut

    async def probed(source: str, target: str) -> bool | None:
        probes.append(target)
        return await is_cut(source, target)

    async def packets_dropped(node: str) -> int:
        return int(len(probes) > 3)

    monkeypatch.setattr(cluster, "is_cut", probed)
    monkeypatch.setattr(cluster, "packets_dropped", packets_dropped)
    applied = await apply(packets, cluster, "drop-packets", ["broker-1"], OPTIONS, rng)
    assert (applied.effect.proved, probes) == (True, ["broker-1"] * 4)


async def test_without_effect_it_is_not_proved(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that drops nothing, a missing rule, or a node that is down, proves nothing."""
    cluster.immortal = True
    applied = await apply(packets, cluster, "drop-packets", ["broker-1"], OPTIONS, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "broker-1: 0 packets dropped")

    async def nothing(node: str, share: float) -> None:
        pass

    monkeypatch.setattr(cluster, "drop_packets", nothing)
    applied = await apply(packets, cluster, "drop-packets", ["broker-2"], OPTIONS, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "broker-2: no rule")
    cluster.down = set(cluster.brokers)
    applied = await apply(packets, cluster, "drop-packets", ["broker-3"], OPTIONS, rng)
    assert (applied.effect.proved, applied.effect.how) == (False, "no target was running")


async def test_a_rule_that_stays_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that is still there, or a running node that does not answer, is not healed."""
    applied = await apply(packets, cluster, "drop-packets", ["broker-1"], OPTIONS, rng)

    async def nothing(node: str) -> None:
        pass

    with monkeypatch.context() as deaf:
        deaf.setattr(cluster, "pass_packets", nothing)
        healed = await packets.heal(cluster, applied)
    assert (healed.proved, healed.how) == (False, "the rule is still there: broker-1")
    cluster.dumb = {"broker-1"}
    healed = await packets.heal(cluster, applied)
    assert (healed.proved, healed.how) == (
        False,
        "the rule is gone, but not answering: broker-1",
    )


async def test_healed_whatever_became_of_the_node(cluster: FakeCluster, rng: random.Random) -> None:
    """A node that died has lost its rule, and a paused node need not answer."""
    both = ["broker-1", "broker-2"]
    applied = await apply(packets, cluster, "drop-packets", both, OPTIONS, rng)
    del cluster.dropped["broker-1"]
    cluster.down, cluster.paused = {"broker-1"}, {"broker-2"}
    assert (await packets.heal(cluster, applied)).proved
    assert cluster.down == {"broker-1"}, "starting it is for the fault that killed it"


async def test_a_heal_that_failed_can_be_repeated(cluster: FakeCluster, rng: random.Random) -> None:
    """A heal that failed with an error of the engine can be repeated."""
    applied = await apply(packets, cluster, "drop-packets", ["broker-1"], OPTIONS, rng)
    cluster.fails["pass_packets"] = 1
    with pytest.raises(OSError, match="engine"):
        await packets.heal(cluster, applied)
    assert (await packets.heal(cluster, applied)).proved
    assert cluster.dropped == {}


@given(seed=st.integers(0), brokers=st.integers(1, 5), session_s=st.floats(0.5, 30.0))
def test_draws(seed: int, brokers: int, session_s: float) -> None:
    """One broker loses some of its packets, never most of them, for about a session or more."""
    shape = ClusterShape(with_zookeeper(brokers), ("x-0",), session_s)
    fault = packets.draw(random.Random(seed), shape)
    assert fault.fault == "drop-packets"
    assert 0.05 <= fault.options["share"] <= 0.4
    assert 0.99 <= fault.duration_s / session_s <= 2.51
    roles = ("controller", "leader:x-0")
    assert fault.targets in roles or fault.targets in [[node] for node in shape.brokers]
