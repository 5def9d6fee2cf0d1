"""Tries out plans, several at a time, until one still shows the anomaly.

A smaller plan changes the course of the simulation and may miss the anomaly by chance, so each is
tried with a few seeds. The result does not depend on which trial ends first.
"""

import functools
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.app import plan_resolution
from harness.app.refused import Refused
from harness.app.run import Failed
from harness.app.search import single_run
from harness.app.search.jobs import SAID, Jobs, drop_if_empty, how_ended
from harness.app.search.outcome import RunResult
from harness.app.shrink.reductions import Seen
from model.plan import Plan

SEEDS = 2
"""The number of seeds with which a plan is tried: its own, and others."""
GLANCE_S = 0.25

Each = Callable[[Plan, Path], RunResult]
"""Runs a plan in a folder."""


class FailingPlan(NamedTuple):
    """A plan that showed the anomaly, and the times of its witnesses."""

    plan: Plan
    seen: Seen


class NoTime(Exception):
    """The time for trials is over, or the user has interrupted them."""


@dataclass
class Trials:
    """Tries plans in child processes, in folders under ``scratch`` that are removed afterwards."""

    anomaly: str
    scratch: Path
    jobs: int
    deadline_s: float
    """The deadline on the clock of ``time.monotonic``."""
    asked_to_end: Sequence[int] = ()
    """Not empty once a signal has requested the end."""
    each: Each = single_run.of_plan
    count: int = 0
    """The number of trials so far."""

    def first(self, plans: Sequence[Plan]) -> FailingPlan | None:
        """Return the first of these plans that shows the anomaly; ``None`` if none does.

        All plans are tried with their own seeds before any is tried with another seed. Raises
        :class:`NoTime`.
        """
        attempts = [
            msgspec.structs.replace(plan, seed=plan.seed + number * 1_000_003)
            for number in range(SEEDS)
            for plan in plans
        ]
        attempts = [plan for plan in attempts if _is_possible(plan)]
        best: int | None = None
        shown: dict[int, FailingPlan] = {}
        under_way: set[int] = set()
        later = 0
        with Jobs[int]() as jobs:
            while best is None or any(number < best for number in under_way):
                while best is None and later < len(attempts) and len(jobs) < self.jobs:
                    self._start(jobs, later, attempts[later])
                    under_way.add(later)
                    later += 1
                if not under_way:
                    return None
                for ended in jobs.ended(GLANCE_S):
                    under_way.discard(ended.key)
                    self.count += 1
                    ran = (
                        msgspec.json.decode(ended.answer, type=RunResult) if ended.answer else None
                    )
                    if ran is not None and self._shows(ran):
                        seen = Seen(*ran.witnessed_s.get(self.anomaly, ()))
                        shown[ended.key] = FailingPlan(attempts[ended.key], seen)
                        best = min(shown)
                if self.asked_to_end or time.monotonic() > self.deadline_s:
                    raise NoTime
        return shown[best]

    def _start(self, jobs: Jobs[int], number: int, plan: Plan) -> None:
        folder = self.scratch / f"trial{self.count}-{number}"
        folder.mkdir(parents=True)
        jobs.start(number, functools.partial(_tried, self.each, plan, folder), folder / SAID)

    def _shows(self, ran: RunResult) -> bool:
        """Return whether the run shows the anomaly and every remaining fault took effect.

        A fault without effect does not contribute to the anomaly.
        """
        return self.anomaly in ran.anomalies and ran.faults == ran.faults_effective


def carried_out(plan: Plan, folder: Path, each: Each) -> RunResult:
    """Run one plan in a child process, which leaves all files in the folder.

    Raises :class:`~harness.app.run.Failed` if the child does not return a result.
    """
    said = folder / SAID
    with Jobs[str]() as jobs:
        jobs.start("it", lambda: msgspec.json.encode(each(plan, folder)), said)
        while True:
            for ended in jobs.ended(GLANCE_S):
                if not ended.answer:
                    raise Failed(how_ended(ended.status, said))
                drop_if_empty(said)
                return msgspec.json.decode(ended.answer, type=RunResult)


def _tried(each: Each, plan: Plan, folder: Path) -> bytes:
    """Run one trial in the child process."""
    try:
        return msgspec.json.encode(each(plan, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_possible(plan: Plan) -> bool:
    try:
        plan_resolution.resolve(plan)
    except Refused:
        return False
    return True
