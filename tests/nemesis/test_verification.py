"""Probes are repeated until one of them has a result."""

import pytest

from nemesis import verification
from tests.nemesis.conftest import FakeCluster

pytestmark = pytest.mark.usefixtures("impatient")


async def told_after(silences: int) -> tuple[int, list[bool | None]]:
    """Return how often was probed, and the last results."""
    probed = 0

    async def probe() -> list[bool | None]:
        nonlocal probed
        probed += 1
        return [None, None if probed <= silences else False]

    answers = await verification.until_answered(probe)
    return probed, list(answers)


async def test_first_answer_ends_it() -> None:
    """One result ends the probes, whatever it is."""
    assert await told_after(0) == (1, [None, False])
    assert await told_after(2) == (3, [None, False])


async def test_silence_is_told_in_the_end() -> None:
    """If no probe ever has a result, the results are empty."""
    assert await told_after(100) == (verification.TRIES, [None, None])


async def test_measured_until_it_holds() -> None:
    """The first measurement that holds is returned, or else the last one."""
    counts = iter(range(100))

    async def count() -> int:
        return next(counts)

    assert await verification.until(count, lambda found: found == 2) == 2
    assert await verification.until(count, lambda found: found == 2) == 2 + verification.TRIES


async def test_silence_of_who_stands(cluster: FakeCluster) -> None:
    """Only running nodes can be silent; nodes that are down, paused or disconnected are not."""
    cluster.down, cluster.paused = {"broker-1"}, {"broker-2"}
    assert await verification.silent(cluster, cluster.nodes) == []
    cluster.off = {"broker-3"}
    assert await verification.silent(cluster, cluster.nodes) == [], "another fault disconnects it"
    cluster.off, cluster.dumb = set(), {"broker-3", "zookeeper"}
    assert await verification.silent(cluster, cluster.nodes) == ["broker-3", "zookeeper"]
