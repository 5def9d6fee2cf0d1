"""``python -m bench.lake``: a lake of 500 simulated runs, asked with SQL and searched for changes.

The runs are of ten commits. In the first lake the second half of the commits has twice the
session timeout, so that a killed broker is missed for longer: ``trends`` must find that. In the
second lake, which differs in nothing else, it must find nothing. Exit status 1: a bar was missed.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.app import plan_resolution
from harness.app.lake import run_row
from harness.app.lake.store import Lake
from harness.app.search import single_run
from harness.app.search.jobs import Jobs
from harness.simulation import determinism
from model.plan import Plan

COMMITS, SEEDS = 10, 50
FAST_MS, SLOW_MS = 2000, 4000
PLAN = {
    "target": "simulated",
    "nemesis": ("kill",),
    "time_limit_s": 6.0,
    "rate_hz": 20.0,
    "options": {"topics": 1, "late_topics": 0, "partitions": 3, "final_time_limit_s": 20},
}
SUITE = "bench"
SQL_S_MAX = 15.0
"""The bar for a statement, with the start of its session."""
STATEMENT = (
    "select `commit`, verdict, count(*) as runs, median(outage_s) as outage_s,"
    " median(throughput_hz) as throughput_hz from runs group by `commit`, verdict"
    " order by min(time)"
)
FIRST_NIGHT = datetime(2026, 1, 1, 2, tzinfo=UTC)


class Night(NamedTuple):
    """The runs of one commit with one session timeout."""

    commit: int
    session_ms: int


def commit(number: int) -> str:
    """Return the hash of a commit that does not exist."""
    return hashlib.sha1(f"commit {number}".encode(), usedforsecurity=False).hexdigest()


def plan_of(night: Night, seed: int) -> Plan:
    """Return the resolved plan of a run: a broker is killed, and starts again."""
    broker = {"zookeeper.session.timeout.ms": str(night.session_ms)}
    kill = {"id": 1, "at_s": 1.5, "duration_s": 0.5, "fault": "kill", "targets": ["broker-1"]}
    number = night.commit * SEEDS + seed
    plan = plan_resolution.plan_of({**PLAN, "broker": broker, "schedule": (kill,), "seed": number})
    return msgspec.structs.replace(plan_resolution.resolve(plan), commit=commit(night.commit))


def simulate(night: Night, seeds: Sequence[int], folder: Path, jobs_max: int) -> list[Path]:
    """Simulate the runs of a night that are not in the folder yet; return the folders of all."""
    made = []
    with Jobs[int]() as jobs:
        for seed in seeds:
            at = FIRST_NIGHT + timedelta(days=night.commit, minutes=seed)
            run = folder / f"{at:%Y%m%dT%H%M%SZ}-idempotent-seed{night.commit * SEEDS + seed}"
            made.append(run)
            if (run / "verdict.json").exists():
                continue
            run.mkdir(parents=True, exist_ok=True)
            while len(jobs) >= jobs_max:
                _ended(jobs)
            plan = plan_of(night, seed)
            jobs.start(
                seed,
                lambda plan=plan, run=run: msgspec.json.encode(single_run.of_plan(plan, run)),  # type: ignore[misc]
                run / "said.txt",
            )
        while len(jobs):
            _ended(jobs)
    return made


def lakes(folder: Path, seeds: Sequence[int], jobs_max: int) -> tuple[list[Path], list[Path]]:
    """Return the folders of the runs with the slow-down, and of those without it."""
    planted, control = [], []
    for number in range(COMMITS):
        fast = simulate(Night(number, FAST_MS), seeds, folder / f"{FAST_MS}ms", jobs_max)
        control += fast
        if number < COMMITS // 2:
            planted += fast
        else:
            slow = Night(number, SLOW_MS)
            planted += simulate(slow, seeds, folder / f"{SLOW_MS}ms", jobs_max)
        print(f"commit {number + 1} of {COMMITS} simulated", flush=True)
    return planted, control


def add_one_by_one(runs: Sequence[Path], lake: Lake) -> list[float]:
    """Add each run by itself, as a gate does; return the seconds that each took."""
    took = []
    for run in runs:
        began = time.monotonic()
        lake.add([run_row.of_folder(run, {"suite": SUITE})])
        took.append(time.monotonic() - began)
    return took


def faultline(*arguments: str) -> tuple[int, str, float]:
    """Run a command; return its exit status, its output, and the seconds that it took."""
    program = [sys.executable, "-m", "harness.app.cli", *arguments]
    began = time.monotonic()
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, time.monotonic() - began


def _ended(jobs: Jobs[int]) -> None:
    for ended in jobs.ended(1.0):
        if ended.status:
            raise RuntimeError(f"the run of seed {ended.key} ended with status {ended.status}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the runs, make the lakes, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.lake", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("results/bench-lake"))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each commit")
    options = parser.parse_args(arguments)
    determinism.exec_pinned()
    determinism.install()
    cores = len(os.sched_getaffinity(0))
    planted, control = lakes(options.folder, range(options.seeds), cores)
    met = []
    for name, runs in (("planted", planted), ("control", control)):
        folder = options.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        took = sorted(add_one_by_one(runs, Lake.create(folder)))
        files = [path.stat().st_size for path in folder.glob("*.parquet")]
        print(
            f"{name}: {len(runs)} runs added one by one, median {took[len(took) // 2] * 1000:.0f}"
            f" ms, maximum {took[-1] * 1000:.0f} ms; {len(files)} files, {sum(files) / 1e3:.0f} kB"
        )
        status, out, seconds = faultline("trends", "--lake", str(folder), "--json")
        worse = [
            each["measure"]
            for each in json.loads(out)["comparisons"]
            if each["is_latest"] and each["verdict"] == "worse"
        ]
        met.append((status == 1 and "outage_s" in worse) if name == "planted" else status == 0)
        print(f"{name}: trends: status {status}, worse: {worse}, {seconds:.1f} s: {_word(met[-1])}")
    status, out, seconds = faultline("sql", STATEMENT, "--lake", str(options.folder / "planted"))
    met.append(status == 0 and seconds <= SQL_S_MAX)
    print(f"{out}sql: {seconds:.1f} s, at most {SQL_S_MAX:.0f} s: {_word(met[-1])}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {cores} cores")
    return 0 if all(met) else 1


def _word(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
