"""What drives a test: a loop of asyncio on this machine's clock, or a simulated world.

Either way SIGINT, SIGTERM and SIGHUP end the test in good order, and progress is shown.
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
from harness.app.screen import Screen
from harness.cluster import simulated
from harness.engine.tally import Tally
from harness.simulation.clock import EPOCH_S
from model.plan import Plan
from model.roles import Cluster

Make = Callable[..., Cluster]
"""Makes the cluster of a plan."""
PATIENCE_S = 600.0
"""How much virtual time a test may take beside the time limit of its work: far more than its start,
its recovery and its final reads are given."""


class Course:
    """How far a test has come."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.wall_ns: Callable[[], int] = time.time_ns
        """The time of day, in nanoseconds since 1970, by a clock that no fault touches."""
        self._clock: Callable[[], float] = lambda: 0.0
        self._began_s = 0.0

    def begin(self, clock: Callable[[], float]) -> None:
        """It is second 0 now; ``clock`` goes on from here."""
        self._clock = clock
        self._began_s = clock()

    def now_s(self) -> float:
        return self._clock() - self._began_s


Test = Callable[[Make, Course], Coroutine[Any, Any, Cluster]]
"""From the first node's start to the last one's end; the cluster, stopped."""


def on_the_clock(plan: Plan, folder: Path, make: Make, test: Test, screen: Screen) -> Cluster:
    """Have it go on in real time."""
    return asyncio.run(_watched(plan, make, test, screen))


async def _watched(plan: Plan, make: Make, test: Test, screen: Screen) -> Cluster:
    _cancel_on_signals()
    course = Course()
    course.begin(asyncio.get_running_loop().time)
    following = asyncio.create_task(screen.follow(course.tally, course.now_s, plan.time_limit_s))
    try:
        return await test(make, course)
    finally:
        following.cancel()


def _cancel_on_signals() -> None:
    """SIGINT, SIGTERM and SIGHUP end the run in good order; a second one is not waited for."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "called from a task"

    def cancel() -> None:
        for number in signals.ending():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler)
        task.cancel()

    for number in signals.ending():
        loop.add_signal_handler(number, cancel)


def in_a_world(plan: Plan, folder: Path, make: Make, test: Test, screen: Screen) -> Cluster:
    """Have it go on in a simulated world of the plan's seed.

    Raises what ``World.run`` and the end of a world raise: when nothing can happen any more, say.
    """
    course = Course()
    tally = course.tally
    with simulated.staged(plan, folder, course.now_s, lambda: tally.calm_since_ns) as stage:
        course.wall_ns = lambda: EPOCH_S * 1_000_000_000 + int(stage.world.now * 1e9)
        make = functools.partial(make, stage=stage)
        process = stage.clients.spawn(lambda: test(make, course))
        shown = screen.simulated(course.tally, course.now_s, plan.time_limit_s)
        with shown as show, asked_to_end() as asked:

            def glance() -> None:
                show()
                if asked:
                    asked.clear()
                    process.call(process.main.cancel)

            stage.world.glance = glance
            cluster: Cluster = stage.world.run(process, plan.time_limit_s + PATIENCE_S)
            return cluster


@contextlib.contextmanager
def asked_to_end() -> Iterator[list[int]]:
    """The signals that have asked for an end; a second one interrupts whatever goes on."""
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
