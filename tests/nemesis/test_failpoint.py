"""A broker that is held at a point of its code, on a cluster in memory."""

import random

from model.layout import with_zookeeper
from nemesis import failpoint, schedule
from tests.nemesis.conftest import FakeCluster, apply

ISR = {"point": "isr.before-zk-write", "within_s": 0.02}
ARRIVES = {**ISR, "within_s": 5.0}
"""As long as a busy machine may need; the fault waits only until a code path arrives."""


async def test_held_until_it_heals(cluster: FakeCluster, rng: random.Random) -> None:
    """A code path is proved to wait at the point until the fault heals."""
    cluster.comers = {"broker-3"}
    applied = await apply(failpoint, cluster, "at-point", "leader:x-0", ARRIVES, rng)
    assert (applied.targets, applied.effect.proved) == (("broker-3",), True)
    assert applied.effect.how == "1 tasks wait at isr.before-zk-write of broker-3"
    healed = await failpoint.heal(cluster, applied)
    assert (healed.proved, healed.how) == (True, "no node waits at isr.before-zk-write")
    assert cluster.halts == set()


async def test_who_never_comes_proves_nothing(cluster: FakeCluster, rng: random.Random) -> None:
    """The fault waits for a code path at the point, but only for a limited time."""
    applied = await apply(failpoint, cluster, "at-point", ["broker-1"], ISR, rng)
    assert (applied.effect.proved, applied.effect.how) == (
        False,
        "0 tasks wait at isr.before-zk-write of broker-1",
    )


def test_none_is_drawn() -> None:
    """The fault is never drawn, because something else has to bring a broker to the point."""
    assert (
        schedule.draw([failpoint.PACKAGE], layout=with_zookeeper(1), seed=1, time_limit_s=60.0)
        == ()
    )
