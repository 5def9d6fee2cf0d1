"""Wrong clocks, on a cluster in memory in which half a second passes between two readings."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.layout import with_zookeeper
from nemesis import clock
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        pass

    monkeypatch.setattr(asyncio, "sleep", sleep)


@pytest.mark.parametrize("rate", [0.5, 0.95, 1.25, 2.0])
async def test_a_clock_that_is_fast_or_slow(
    cluster: FakeCluster, rng: random.Random, rate: float
) -> None:
    """Two readings prove the rate, and that it is right again."""
    applied = await apply(clock, cluster, "clock-skew", ["broker-2"], {"rate": rate}, rng)
    assert applied.effect.proved
    assert applied.effect.how == f"broker-2: {(rate - 1) / 2:+.3f} s within 0.5 s"
    assert (await clock.heal(cluster, applied)).proved
    assert (cluster.rates["broker-2"], cluster.ahead_s["broker-2"]) == (1.0, 0.0)


@pytest.mark.parametrize("seconds", [-3600.0, -0.5, 0.5, 3600.0])
async def test_a_clock_that_jumps(cluster: FakeCluster, rng: random.Random, seconds: float) -> None:
    """A clock jumps forward or back, and is set right again."""
    options = {"seconds": seconds}
    applied = await apply(clock, cluster, "clock-jump", "controller", options, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-1",), True)
    assert applied.effect.how == f"broker-1: {seconds:+.3f} s"
    assert (await clock.heal(cluster, applied)).proved
    assert cluster.ahead_s["broker-1"] == 0.0


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("clock-skew", {"rate": 0.95}),
        ("clock-skew", {"rate": 1.0}),
        ("clock-jump", {"seconds": 0.5}),
        ("clock-jump", {"seconds": 0.0}),
    ],
)
async def test_without_effect_it_is_not_proved(
    cluster: FakeCluster, rng: random.Random, fault: str, options: dict[str, float]
) -> None:
    """A clock that stays right proves nothing, even if the requested change is none."""
    cluster.immortal = True
    applied = await apply(clock, cluster, fault, ["broker-1"], options, rng)
    assert not applied.effect.proved


async def test_a_clock_that_stays_wrong_is_not_healed(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is right now and runs at the wrong rate is not healed."""
    applied = await apply(clock, cluster, "clock-skew", ["broker-1"], {"rate": 0.5}, rng)

    async def set_only(node: str) -> None:
        cluster.ahead_s[node] = 0.0

    monkeypatch.setattr(cluster, "correct_clock", set_only)
    assert not (await clock.heal(cluster, applied)).proved


@given(seed=st.integers(0))
def test_draws(seed: int) -> None:
    """A wrong rate is drawn, or a jump of at most an hour."""
    fault = clock.draw(random.Random(seed), ClusterShape(with_zookeeper(1)))
    if fault.fault == "clock-skew":
        assert fault.options["rate"] != 1.0
    else:
        assert 0.5 <= abs(fault.options["seconds"]) <= 3600.0
