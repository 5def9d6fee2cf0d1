"""Hosts may have wrong clocks, and the timers of their processes follow these."""

import asyncio
import time
from typing import Any

import pytest

from harness.simulation.clock import EPOCH_S


def test_wall_clocks_differ_by_host(pair: Any) -> None:
    """Each process reads its own host's wall clock; a skew does not affect the monotonic clock."""
    pair.alpha.clock.skew_s = 3600

    async def main() -> tuple[float, float]:
        await asyncio.sleep(10)
        return time.time(), time.monotonic()  # noqa: TID251 - is simulated

    ahead = pair.run(main, pair.alpha)
    exact = pair.run(main, pair.beta)
    assert ahead == (pytest.approx(EPOCH_S + 3610, abs=0.01), pytest.approx(10, abs=0.01))
    assert exact == (pytest.approx(EPOCH_S + 20, abs=0.01), pytest.approx(20, abs=0.01))


def test_wall_clock_jumps_and_timers_do_not(pair: Any) -> None:
    """After a jump back the wall clock shows an earlier time; timers are not affected."""

    async def main() -> tuple[float, float, float]:
        loop = asyncio.get_running_loop()
        before, began = time.time(), loop.time()  # noqa: TID251 - is simulated
        loop.call_later(1, pair.beta.clock.jump, -100)
        await asyncio.sleep(5)
        return time.time() - before, loop.time() - began, time.time_ns() / 1e9 - before  # noqa: TID251

    wall, elapsed, wall_ns = pair.run(main)
    assert wall == pytest.approx(-95, abs=0.01)
    assert wall_ns == pytest.approx(-95, abs=0.01)
    assert elapsed == pytest.approx(5, abs=0.01)


def test_drift_moves_timers(pair: Any) -> None:
    """On a clock that runs fast, timers fire early, including those set before."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(10, pair.beta.clock.drift, 2.0)
        began = loop.time()
        await asyncio.sleep(30)
        return loop.time() - began

    assert pair.run(main) == pytest.approx(30, abs=0.01), "by its own clock"
    assert pair.world.now == pytest.approx(20, abs=0.01), "10 s, then 20 s at double speed"
    with pytest.raises(ValueError, match="above 0"):
        pair.beta.clock.drift(0)


def test_cancelled_timers_do_not_pile_up(pair: Any) -> None:
    """Twenty thousand cancelled time-outs leave a few hundred entries at most."""
    sizes: list[int] = []

    async def main() -> None:
        for _ in range(20_000):
            asyncio.get_running_loop().call_later(1000, print).cancel()
            if len(pair.world.timeline.heap) > 600:
                sizes.append(len(pair.world.timeline.heap))
        await asyncio.sleep(1)

    pair.run(main)
    assert sizes == []
