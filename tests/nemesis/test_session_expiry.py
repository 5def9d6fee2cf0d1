"""Expired sessions, on a cluster in memory."""

import asyncio
import random

import pytest

from model.layout import with_zookeeper
from nemesis import session_expiry
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply

pytestmark = pytest.mark.usefixtures("impatient")


async def test_over_and_registered_anew(cluster: FakeCluster, rng: random.Random) -> None:
    """The broker has another registration afterwards, without having been started."""
    applied = await apply(session_expiry, cluster, "expire-session", "controller", {}, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-1",), True)
    assert applied.effect.how == "broker-1: the session of registration 1 is over"
    healed = await session_expiry.heal(cluster, applied)
    assert (healed.proved, healed.how) == (True, "registered again: broker-1")
    assert cluster.log == []


async def test_without_effect_it_is_not_proved(cluster: FakeCluster, rng: random.Random) -> None:
    """A session that did not end, or a broker without one, proves nothing."""
    cluster.rooted = True
    applied = await apply(session_expiry, cluster, "expire-session", ["broker-1"], {}, rng)
    assert not applied.effect.proved
    assert applied.effect.how == "broker-1: the session of registration 1 is unchanged"
    cluster.rooted, cluster.registered["broker-1"] = False, None
    applied = await apply(session_expiry, cluster, "expire-session", ["broker-1"], {}, rng)
    assert not applied.effect.proved


async def test_who_has_no_session_yet_is_waited_for(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a broker has no session yet, the fault waits until it registers, and ends that session."""
    cluster.registered["broker-1"] = None
    monkeypatch.setattr(session_expiry, "LOOK_EVERY_S", 0)
    looks = 0
    registration = cluster.registration

    async def later(node: str) -> int | None:
        nonlocal looks
        looks += 1
        if looks == 3:
            cluster.registered[node] = 7
        return await registration(node)

    monkeypatch.setattr(cluster, "registration", later)
    applied = await apply(session_expiry, cluster, "expire-session", ["broker-1"], {}, rng)
    assert (applied.effect.proved, applied.undo) == (True, {"broker-1": 7})


async def test_who_is_down_is_not_waited_for(
    cluster: FakeCluster, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault does not wait for the session of a broker that is down."""
    monkeypatch.setattr(session_expiry, "COME_S", 60.0)
    cluster.registered["broker-1"] = None
    cluster.down = {"broker-1", "broker-2", "broker-3"}
    async with asyncio.timeout(5):
        applied = await apply(session_expiry, cluster, "expire-session", ["broker-1"], {}, rng)
    assert not applied.effect.proved


async def test_who_stays_away_is_not_healed(cluster: FakeCluster, rng: random.Random) -> None:
    """A running broker that does not register again is not healed; one that is down may be."""
    cluster.homeless = True
    applied = await apply(session_expiry, cluster, "expire-session", ["broker-1"], {}, rng)
    assert applied.effect.proved
    healed = await session_expiry.heal(cluster, applied)
    assert (healed.proved, healed.how) == (False, "not registered again: broker-1")
    cluster.down = {"broker-1"}
    assert (await session_expiry.heal(cluster, applied)).proved


def test_draws() -> None:
    """One broker is drawn, to be alone."""
    fault = session_expiry.draw(random.Random(1), ClusterShape(with_zookeeper(1)))
    assert (fault.fault, fault.duration_s, fault.alone) == ("expire-session", 0.0, True)
