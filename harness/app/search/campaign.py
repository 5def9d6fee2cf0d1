"""Runs many simulations, one seed each, on several cores; keeps the runs that are not valid."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.app import files, runtime, versions
from harness.app.lake.add import add_run
from harness.app.lake.store import Lake
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.rules import figures
from harness.app.run import new_folder
from harness.app.search import batch_check, draw, outcome, single_run, workload_draw
from harness.app.search.batch_check import BatchResult
from harness.app.search.coverage import Coverage, Each
from harness.app.search.guided.guide import Guide
from harness.app.search.jobs import SAID, Ended, Jobs, drop_if_empty, how_ended
from harness.app.search.outcome import RunResult, Stopped, Summary
from harness.app.search.temp_dir import scratch

RUNS = 100
RED_KEPT_MAX = 50
"""The number of invalid, unknown and failed runs whose folders are kept.

Of further ones only the seed is reported, which reproduces them.
"""
GLANCE_S = 0.25
NOTED_EVERY_S = 10.0
"""How often the summary so far is written, because a search may be killed at any time."""


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The parameters of a search."""

    pinned: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a plan, as in options and plan files; all others are drawn."""
    first: int = 1
    """The first seed; the others follow it."""
    runs: int | None = None
    """The maximum number of runs; ``None`` means as many as the time allows."""
    minutes: float | None = None
    """The time after which no run begins; ``None`` means no limit."""
    jobs: int = 1
    keep: int = 0
    """The number of valid runs whose folders are kept."""
    enough: int | None = 1
    """After this many invalid or failed runs no other begins; ``None`` means no limit."""
    spark: bool = False
    """True if all histories are judged again at the end, in one Spark job."""
    coverage: bool = False
    """True if it is recorded which branches of the rules the runs reach."""
    guided: bool = False
    """True if plans of runs that have reached rare states are changed for later runs."""
    lake: Lake | None = None
    """The lake to which each run is added; ``None`` for none."""


def run(
    asked: SearchRequest, results: Path, screen: Screen, each: Each = single_run.of_seed
) -> Summary:
    """Run the search in a new folder under ``results/searches``.

    SIGINT or SIGTERM ends it at once, with a summary of the runs so far. If Spark was requested and
    fails, the summary says why. Raises :class:`~harness.app.refused.Refused` if no plan can be
    drawn with the pinned fields.
    """
    draw.plan_of(asked.first, asked.pinned)  # raises Refused here, not in a child
    if asked.guided and "schedule" in asked.pinned:
        raise Refused("--guided: a search with a schedule of its own has nothing to change")
    draw.refuse_quiet(asked.first, asked.pinned)
    versions.commit()
    what = f"{workload_draw.named(asked.pinned)}-seed{asked.first}"
    folder = new_folder(results / "searches", what, time.gmtime())
    screen.say(str(folder))
    with (
        runtime.asked_to_end() as ending,
        scratch(folder) as place,
        Jobs[int]() as jobs,
    ):
        search = _Search(asked, folder, place, each)
        try:
            _drive(search, jobs, asked.jobs, ending, screen)
        finally:
            search.close()
    search.add_failed()
    search.write()
    if asked.spark and not ending:
        search.judge_together(screen)
    summary = search.summary()
    outcome.write(summary)
    return summary


def _drive(
    search: "_Search", jobs: Jobs[int], count: int, ending: Sequence[int], screen: Screen
) -> None:
    """Run seeds until no more are wanted, or a signal ends the search."""
    with screen.many(search.share_max) as show:
        while True:
            while search.check_limits() and len(jobs) < count and not ending:
                search.launch(jobs)
            if ending or not len(jobs):
                break
            for ended in jobs.ended(GLANCE_S):
                search.take(ended)
            search.note_down()
            show(search.share, search.line)
    if ending:
        search.stopped = "interrupted"
    elif search.stopped == "interrupted":
        search.stopped = "done"


class _Search:
    """The state of one search."""

    def __init__(self, asked: SearchRequest, folder: Path, scratch: Path, each: Each) -> None:
        self._asked = asked
        self._guide: Guide | None = None
        self._coverage: Coverage | None = None
        if asked.coverage or asked.guided:
            self._coverage = Coverage(asked.pinned, scratch)
            if asked.guided:
                self._guide = Guide(asked.pinned, asked.first, self._coverage, scratch)
                each = self._guide.each
            each = self._coverage.of_each(each)
        self._each = each
        self._folder = folder
        self._scratch = scratch
        self._ran: list[RunResult] = []
        self._next = asked.first
        self._red = 0
        self._began_s = self._noted_s = time.monotonic()
        self.stopped: Stopped = "interrupted"
        """``interrupted`` until the search reaches an end of its own."""
        self._together: BatchResult | None = None
        self._spark_failed: str | None = None

    # Starting and ending runs.

    def check_limits(self) -> bool:
        """Return whether another run may begin; if a limit is reached, record which one."""
        asked = self._asked
        bad = sum(run.status in ("invalid", "failed") for run in self._ran)
        if asked.enough is not None and bad >= asked.enough:
            self.stopped = "found"
        elif asked.minutes is not None and self._seconds >= asked.minutes * 60:
            self.stopped = "time"
        elif self._guide is None or self._guide.may_begin(self._next):
            return asked.runs is None or self._next < asked.first + asked.runs
        return False

    def launch(self, jobs: Jobs[int]) -> None:
        seed, self._next = self._next, self._next + 1
        folder = self._scratch / f"seed{seed}"
        folder.mkdir()
        kept = self._kept(seed)
        is_sample = seed - self._asked.first < self._asked.keep
        keeps_red = self._red < RED_KEPT_MAX
        each, pinned = self._each, self._asked.pinned
        aside = self._aside(seed) if self._asked.spark else None
        lake, name = self._asked.lake, f"{self._folder.name}/{kept.name}"

        def work() -> bytes:
            ran = each(seed, pinned, folder)
            if aside is not None and ran.status != "failed":
                batch_check.put_aside(folder, aside)
            is_kept = is_sample if ran.status == "valid" else keeps_red
            if lake is not None:
                ran = _added(ran, lake, folder, name, kept if is_kept else None)
            if is_kept:
                shutil.move(folder, kept)
                if ran.status != "failed":
                    ran = _finished(ran, kept)
                ran = msgspec.structs.replace(ran, folder=str(kept))
            else:
                shutil.rmtree(folder)
            return msgspec.json.encode(ran)

        jobs.start(seed, work, folder / SAID)

    def take(self, ended: Ended[int]) -> None:
        """Record the result of a child process that has ended."""
        if ended.status == 0:
            ran = msgspec.json.decode(ended.answer, type=RunResult)
        else:
            kept = self._kept(ended.key)
            if not kept.exists():
                shutil.move(self._scratch / kept.name, kept)
            why = how_ended(ended.status, kept / SAID)
            workload = draw.workload_of(ended.key, self._asked.pinned)
            ran = RunResult(
                seed=ended.key, status="failed", workload=workload, why=(why,), folder=str(kept)
            )
        if ran.folder is not None:
            drop_if_empty(Path(ran.folder) / SAID)
        if self._coverage is not None:
            self._coverage.take(ended.key)
        if self._guide is not None:
            self._guide.take(ended.key)
        self._red += ran.status != "valid"
        self._ran.append(ran)

    def add_failed(self) -> None:
        """Add runs to the lake whose process ended before it could; the others are there."""
        lake = self._asked.lake
        for run in self._ran:
            if lake is not None and run.status == "failed" and run.folder is not None:
                folder = Path(run.folder)
                _added(run, lake, folder, f"{self._folder.name}/{folder.name}", folder)

    def note_down(self) -> None:
        """Write the summary so far, from time to time."""
        if time.monotonic() - self._noted_s >= NOTED_EVERY_S:
            self.write()
            self._noted_s = time.monotonic()

    def write(self) -> None:
        """Write the summary, and the coverage if it is recorded."""
        outcome.write(self.summary())
        if self._coverage is not None:
            figures.write(self._coverage.figures(), self._folder)

    def close(self) -> None:
        """Remove what was put into this process for the runs."""
        if self._coverage is not None:
            self._coverage.close()

    def judge_together(self, screen: Screen) -> None:
        """Judge again, with Spark, all histories that were judged one by one."""
        folders = [self._aside(run.seed) for run in self._ran if run.status != "failed"]
        screen.say(f"judging {len(folders):,} histories together …")
        try:
            self._together = batch_check.judge(sorted(folders))
        except Exception as error:  # noqa: BLE001 - the first judgements stand without it
            self._spark_failed = files.described(error, self._folder)
            return
        if not self._together.differ:
            shutil.rmtree(self._aside(0).parent, ignore_errors=True)

    # Progress and summary.

    @property
    def share_max(self) -> float:
        asked = self._asked
        return float(asked.runs or (asked.minutes or 0) * 60 or 1)

    @property
    def share(self) -> float:
        """How much of :attr:`share_max` is done."""
        return float(len(self._ran)) if self._asked.runs else self._seconds

    @property
    def line(self) -> str:
        summary = self.summary()
        virtual_s, seconds = summary.simulated_seconds, max(summary.seconds, 1.0)
        odd = f"{len(summary.findings)} invalid, {summary.unknown} unknown, {summary.failed} failed"
        return (
            f"{summary.runs:,} runs, {virtual_s / 3600:.1f} simulated hours · {odd} ·"
            f" {summary.runs / seconds * 60:.0f} runs a minute, {virtual_s / seconds:.0f} times"
            " real time"
        )

    def summary(self) -> Summary:
        return outcome.summary(
            self._ran,
            seconds=self._seconds,
            stopped=self.stopped,
            seed=self._asked.first,
            pinned=self._asked.pinned,
            folder=self._folder,
            reached=None if self._guide is None else self._guide.corpus.size,
            together=self._together,
            spark_failed=self._spark_failed,
        )

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began_s

    def _kept(self, seed: int) -> Path:
        return self._folder / f"seed{seed}"

    def _aside(self, seed: int) -> Path:
        return self._folder / "judged" / f"seed{seed}"


def _added(ran: RunResult, lake: Lake, folder: Path, name: str, kept: Path | None) -> RunResult:
    """Add a run to the lake; if that fails, the result says why, and its status is the same."""
    why = add_run(lake, folder, kept=kept, name=name)
    if why is None:
        return ran
    return msgspec.structs.replace(ran, why=(*ran.why, f"not added to the lake: {why}"))


def _finished(ran: RunResult, folder: Path) -> RunResult:
    """Write a run's report; if that fails, the result says why, and its status is the same."""
    why = files.attempted(
        lambda: single_run.finish(folder), "report.html cannot be written", folder
    )
    return ran if why is None else msgspec.structs.replace(ran, why=(*ran.why, why))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
