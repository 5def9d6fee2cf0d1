"""Runs a test in an asyncio event loop, either in real time or in a simulation.

In both cases SIGINT, SIGTERM and SIGHUP end the test cleanly, and progress is shown.
"""

import asyncio
import contextlib
import functools
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from harness.app import signals
from harness.app.progress import Screen
from harness.cluster.simulated import simulated_cluster
from harness.engine.progress import Tally
from harness.simulation.clock import EPOCH_S
from model.capabilities.cluster import Cluster
from model.plan import Plan

Make = Callable[..., Cluster]
"""Creates the cluster of a plan."""
PATIENCE_S = 600.0
"""How much virtual time a test may take in addition to the limits of its main phase and of its
final reads.

It is far more than the limits of its start and its recovery.
"""


class RunClock:
    """The progress of a test, and its clock."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.wall_ns: Callable[[], int] = time.time_ns
        """The time of day in nanoseconds since 1970, by a clock that no fault touches."""
        self._clock: Callable[[], float] = lambda: 0.0
        self._began_s = 0.0

    def begin(self, clock: Callable[[], float]) -> None:
        """Set the test's clock to 0; it continues with ``clock``."""
        self._clock = clock
        self._began_s = clock()

    def now_s(self) -> float:
        return self._clock() - self._began_s


Test = Callable[[Make, RunClock], Coroutine[Any, Any, Cluster]]
"""Runs a test from the first node's start to the last one's end; returns the stopped cluster."""


def on_the_clock(plan: Plan, folder: Path, make: Make, test: Test, screen: Screen) -> Cluster:
    """Run the test in real time."""
    return asyncio.run(_watched(plan, make, test, screen))


async def _watched(plan: Plan, make: Make, test: Test, screen: Screen) -> Cluster:
    _cancel_on_signals()
    course = RunClock()
    course.begin(asyncio.get_running_loop().time)
    following = asyncio.create_task(screen.follow(course.tally, course.now_s, plan.time_limit_s))
    try:
        return await test(make, course)
    finally:
        following.cancel()


def _cancel_on_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the run cleanly; a second signal interrupts it at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "this coroutine runs in a task"

    def cancel() -> None:
        for number in signals.ending():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler)
        task.cancel()

    for number in signals.ending():
        loop.add_signal_handler(number, cancel)


def in_a_world(plan: Plan, folder: Path, make: Make, test: Test, screen: Screen) -> Cluster:
    """Run the test in a simulation seeded by the plan.

    Raises what ``World.run`` and the end of a simulation raise, for example when it is deadlocked.
    """
    course = RunClock()
    tally = course.tally
    with simulated_cluster.staged(plan, folder, course.now_s, lambda: tally.calm_since_ns) as stage:
        course.wall_ns = lambda: EPOCH_S * 1_000_000_000 + int(stage.world.now * 1e9)
        make = functools.partial(make, stage=stage)
        process = stage.clients.spawn(lambda: test(make, course))
        shown = screen.simulated(course.tally, course.now_s, plan.time_limit_s)
        with shown as show, asked_to_end() as asked:

            def show_progress() -> None:
                show()
                if asked:
                    asked.clear()
                    process.call(process.main.cancel)

            stage.world.on_progress = show_progress
            limit_s = plan.time_limit_s + float(plan.options["final_time_limit_s"]) + PATIENCE_S
            cluster: Cluster = stage.world.run(process, limit_s)
            return cluster


@contextlib.contextmanager
def asked_to_end() -> Iterator[list[int]]:
    """Yield a list that collects the ending signals; a second signal interrupts at once."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for each in signals.ending():
            signal.signal(each, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in signals.ending()}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
