"""The selector that measures the idle time of a loop."""

import asyncio
import time

from broker_impl.platform.idle_selector import IdleSelector


def test_waiting_counts_and_work_does_not() -> None:
    """The time in which the loop waits is idle; that of a callback is not."""
    selector = IdleSelector()

    async def work_then_wait() -> tuple[float, float]:
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.02:
            pass
        await asyncio.sleep(0)
        before = selector.idle_s
        await asyncio.sleep(0.02)
        return before, selector.idle_s

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        before, after = runner.run(work_then_wait())
    assert before < 0.01
    assert after - before >= 0.015
