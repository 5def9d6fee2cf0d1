"""Planted bugs of an ensemble: the schedule that shows each, and how often drawn runs find it.

    python -m bench.ensembles.planted                 # the scripted schedules, with and without
    python -m bench.ensembles.planted --chance 20     # the share of so many drawn runs as well
    python -m bench.ensembles.planted zk-zombie-log   # one of them

A bug that none of the drawn runs has found is looked for in up to 200. The exit status is 1 if a
schedule does not show its bug, or shows something without it.
"""

from harness.simulation import determinism

if __name__ == "__main__":
    determinism.exec_pinned()
determinism.install()

import argparse  # noqa: E402
import logging  # noqa: E402
import sys  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402

from bench.ensembles import campaign  # noqa: E402
from bench.ensembles.one_run import Outcome, run  # noqa: E402
from bench.ensembles.rig import Shape  # noqa: E402
from bench.ensembles.scripts import scripted  # noqa: E402
from broker_impl import mutants  # noqa: E402

RUNS_MAX = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """What shows a planted bug: a story, or the faults that are drawn from a seed."""

    story: str = ""
    seed: int = 1
    observers: int = 0
    snap_count: int = 40
    window: int = 500
    together_with: tuple[str, ...] = ()
    """Other bugs without which this one is hidden by a second check."""
    symptom: str = ""
    """The name of the check of these clients that must find it, if it has another name than the
    anomaly of a history."""

    def run(self, planted: Sequence[str]) -> Outcome:
        """Run the schedule with these bugs."""
        if not self.story:
            return campaign.one(self.seed, voters=3, observers=self.observers, planted=planted)
        shape = Shape(observers=self.observers, snap_count=self.snap_count, window=self.window)
        return run(self.seed, shape, scripted(self.story), planted=planted)

    def __str__(self) -> str:
        what = f"story `{self.story}`" if self.story else f"drawn, seed {self.seed}"
        if self.observers:
            what += f", {self.observers} observers"
        return what + "".join(f", with `{name}`" for name in self.together_with)


_STATE = {"snap_count": 8, "window": 4}
SCHEDULES: Mapping[str, Schedule] = {
    "zk-ack-before-write": Schedule("restarts"),
    "zk-commit-without-quorum": Schedule("lonely-leader"),
    "zk-cversion-without-deletes": Schedule("calm", symptom="cversion-skipped"),
    "zk-difference-in-place-of-truncation": Schedule("truncation"),
    "zk-disk-error-ignored": Schedule("full-disk"),
    "zk-ephemerals-not-restored": Schedule("restarts", snap_count=8, symptom="ephemeral-left"),
    "zk-epoch-before-history": Schedule("epoch-without-history"),
    "zk-epoch-not-entered": Schedule("restarts"),
    "zk-history-logged-late": Schedule("joins"),
    "zk-history-not-synced": Schedule(seed=2),
    "zk-keeps-uncommitted-state": Schedule("lonely-leader"),
    "zk-leader-forgets-promise": Schedule("restarts"),
    "zk-leader-takes-longer-history": Schedule("laggard", together_with=("zk-votes-prefer-id",)),
    "zk-leader-without-quorum": Schedule("islands"),
    "zk-log-not-synced": Schedule("power"),
    "zk-log-not-written": Schedule("restarts"),
    "zk-observers-vote": Schedule("observers-first", observers=2),
    "zk-partial-multi": Schedule("calm", symptom="torn-multi"),
    "zk-password-ignored": Schedule("calm", symptom="password-ignored"),
    "zk-quorum-of-half": Schedule("islands"),
    "zk-reply-before-event": Schedule("calm", symptom="event-after-reply"),
    "zk-serves-without-leader": Schedule(seed=4, symptom="watch-missed"),
    "zk-session-ends-with-connection": Schedule("resets", symptom="expired-early"),
    "zk-session-expires-early": Schedule("silence", symptom="expired-early"),
    "zk-session-moved-ignored": Schedule("moved"),
    "zk-stale-pzxid": Schedule("restarts"),
    "zk-state-beside-old-log": Schedule("state-interrupted", **_STATE),
    "zk-state-in-memory": Schedule("state-interrupted", **_STATE),
    "zk-truncation-ignored": Schedule("truncation"),
    "zk-votes-prefer-id": Schedule("laggard", together_with=("zk-leader-takes-longer-history",)),
    "zk-watch-fires-twice": Schedule("calm", symptom="watch-twice"),
    "zk-zombie-log": Schedule("lonely-leader"),
    "zk-zxid-of-difference": Schedule("joins"),
}
"""The schedule of each planted bug. Those that are missing have none in an ensemble of this
project's servers; docs/zookeeper-bugs.md says why."""


def main() -> int:
    """Run the schedules, and print a line for each bug."""
    options = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    failed = False
    for name in options.names or mutants.names("zookeeper"):
        shown = "not run" if options.only_drawn else _scripted(name)
        failed = failed or "FAILED" in shown
        print(f"| `{name}` | {shown} | {_chance(name, options.chance, options.most)} |", flush=True)
    return int(failed)


def symptom_of(name: str) -> str:
    """Return the name of the check that must find a bug."""
    return SCHEDULES[name].symptom or mutants.get(name).symptom


def _scripted(name: str) -> str:
    schedule = SCHEDULES.get(name)
    if schedule is None:
        return "none"
    bugs = [name, *schedule.together_with]
    symptom = symptom_of(name)
    with_it, without = schedule.run(bugs), schedule.run([])
    if symptom not in with_it.names or without.violations:
        return f"FAILED: {symptom} is not in {with_it.names}, or {without.names} is not empty"
    return f"{schedule}: {symptom}"


def _chance(name: str, runs: int, most: int) -> str:
    """Return in how many of the drawn runs the bug was found, or which was the first of more."""
    if not runs:
        return "not measured"
    schedule = SCHEDULES.get(name, Schedule())
    found: list[int] = []
    seeds = range(1001, 1001 + most)
    outcomes = campaign.outcomes(seeds, voters=3, observers=schedule.observers, planted=[name])
    for count, outcome in enumerate(outcomes, 1):
        if outcome.violations:
            found.append(outcome.seed)
        if count >= runs and found:
            return f"{len(found)} of {count}, first by seed {found[0]}"
    return f"0 of {most}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.ensembles.planted",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the bugs; all by default")
    parser.add_argument("--chance", type=int, default=0, metavar="RUNS", help="drawn runs of each")
    parser.add_argument("--most", type=int, default=RUNS_MAX, help="until one of them has found it")
    parser.add_argument("--only-drawn", action="store_true", help="no scripted schedules")
    return parser


if __name__ == "__main__":
    sys.exit(main())
