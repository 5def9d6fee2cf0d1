"""``python -m bench.spark``: large histories are judged inline and on Spark, within limits.

Each judgement is a process of its own. Histories of up to ten million operations are judged three
times, and the median counts; larger ones are judged once. Exit status 1: a limit was missed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.nodes import ROOT
from bench.spark import generate, histories
from bench.spark.histories import Spec
from bench.spark.judge import Judged
from bench.spark.memory import Peaks, Sampler
from bench.table import Bar

SIZES = (10**5, 10**6, 10**7)
REPEATED = 10**7
"""Up to this number of operations, a history is judged several times."""
INLINE_MAX = 10**6
"""Above this number of operations, inline is not asked: it would need too much memory."""
LINES_MAX = 10**7
"""Above this number of operations, there are no lines of JSON."""


class Rate(NamedTuple):
    """How many operations must be judged in a second, and on how many cores."""

    limit: float
    cores: int


RATES = {".jsonl": Rate(200_000.0, 1), ".parquet": Rate(1_000_000.0, 2)}
"""What inline must reach."""
UNLIMITED = ("transactions", ".parquet")
"""The kind and the form whose rate has no limit, because it includes the search for cycles."""
INLINE_MB = 1000.0
DRIVER_MB, EXECUTOR_MB = 1000.0, 2000.0
SPARK_S = {(10**7, ".jsonl"): 240.0, (10**7, ".parquet"): 60.0, (10**8, ".parquet"): 720.0}
"""Seconds that Spark may take, by operations and form, after its session has started."""
TRANSACTIONS_S = 240.0
"""Seconds that Spark may take for ten million transactions."""
HOT = 0.9
HOT_RATIO, HOT_MIN = 1.5, 10**7
"""How much longer a history may take that has this share in one partition, and from how many
operations on: with fewer, most of the time is that of starting jobs."""


class Case(NamedTuple):
    """A history, and who judges it."""

    spec: Spec
    suffix: str
    executor: str

    @property
    def name(self) -> str:
        """What is measured, in words."""
        spec = self.spec
        extra = f", {spec.hot:.0%} hot" * bool(spec.hot) + ", planted" * spec.planted
        return f"{self.executor} {spec.kind} {spec.operations:,} {self.suffix[1:]}{extra}"


class Measured(NamedTuple):
    """The judgement of one case with the median of wall time, the median of CPU time in it, and
    the largest memory."""

    judged: Judged
    peaks: Peaks


def cases(sizes: Sequence[int], kinds: Sequence[str]) -> Iterator[Case]:
    """Yield what is measured."""
    for kind, size in product(kinds, sizes):
        even = Spec(kind, size)
        executors = ("inline", "spark") if size <= INLINE_MAX else ("spark",)
        suffixes = (".parquet", ".jsonl") if size <= LINES_MAX else (".parquet",)
        yield from (Case(even, *how) for how in product(suffixes, executors))
        yield Case(replace(even, hot=HOT), ".parquet", "spark")
        yield from (Case(replace(even, planted=True), ".parquet", how) for how in executors)
        yield Case(replace(even, hot=HOT, planted=True), ".parquet", "spark")


def measured(case: Case, path: Path, times: int) -> Measured:
    """Judge a history this many times in processes of their own, or once if it is large."""
    times = times if case.spec.operations <= REPEATED else 1
    found = [_measured(case, path) for _ in range(times)]
    typical = median(each.judged.seconds for each in found)
    peaks = Peaks(*map(max, *(each.peaks for each in found), Peaks(0.0)))
    judged = next(each.judged for each in found if each.judged.seconds == typical)
    cpu_s = median(each.judged.cpu_s for each in found)
    return Measured(msgspec.structs.replace(judged, cpu_s=cpu_s), peaks)


def command(case: Case, path: Path, cores: Sequence[int]) -> list[str]:
    """Return the command that judges a history, inline on some of these cores."""
    judge = [sys.executable, "-m", "bench.spark.judge", case.executor, str(path)]
    if case.executor != "inline":
        return judge
    mine = cores[: RATES[case.suffix].cores]
    return ["taskset", "--cpu-list", ",".join(map(str, mine)), *judge]


def _measured(case: Case, path: Path) -> Measured:
    asked = command(case, path, sorted(os.sched_getaffinity(0)))
    with (
        subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE) as process,
        Sampler(process.pid) as sampler,
    ):
        out, _ = process.communicate()
    return Measured(msgspec.json.decode(out, type=Judged), sampler.peaks)


def bars(case: Case, found: Measured, even_s: float | None) -> Iterator[Bar]:
    """Yield the limits of a case; ``even_s`` is how long the same history takes without a hot
    partition."""
    spec, judged, peaks = case.spec, found.judged, found.peaks
    wanted = dict(histories.PLANTED[spec.kind]) if spec.planted else {}
    right = judged.anomalies == wanted and judged.operations == spec.operations
    yield Bar(f"{case.name}: found", "exactly what is planted", float(right), 1.0)
    if case.executor == "inline":
        if spec.operations == 10**6 and not spec.planted:
            rate, reached = RATES[case.suffix], spec.operations / judged.seconds
            unit = f"operations per second on {rate.cores} cores"
            if (spec.kind, case.suffix) != UNLIMITED:
                yield Bar(f"{case.name}: rate", unit, reached, rate.limit)
            yield Bar(f"{case.name}: memory", "MB", peaks.driver, INLINE_MB, at_most=True)
        return
    yield Bar(f"{case.name}: driver", "MB", peaks.driver, DRIVER_MB, at_most=True)
    largest = max(peaks.java, peaks.python)
    yield Bar(f"{case.name}: executor", "MB", largest, EXECUTOR_MB, at_most=True)
    limit = SPARK_S.get((spec.operations, case.suffix))
    if spec.kind == "transactions" and spec.operations == 10**7:
        limit = TRANSACTIONS_S
    if limit is not None and not spec.hot:
        yield Bar(f"{case.name}: time", "s", judged.seconds, limit, at_most=True)
    if spec.hot and spec.operations >= HOT_MIN and even_s is not None:
        ratio = judged.seconds / even_s
        yield Bar(f"{case.name}: ratio to even", "", ratio, HOT_RATIO, at_most=True)


def main() -> int:
    """Measure, and print each figure as soon as it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=lambda text: int(float(text)), nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", default=sorted(histories.PLANTED))
    parser.add_argument("--times", type=int, default=3, help="how often a history is judged (3)")
    parser.add_argument("--only", default="", help="measure cases whose names contain this text")
    asked = parser.parse_args()
    missed = 0
    even_s: dict[Spec, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        made: tuple[Spec, str] | None = None
        path = Path(folder)
        for case in cases(asked.sizes, asked.kinds):
            if asked.only not in case.name:
                continue
            if made != (case.spec, case.suffix):
                if path.is_file():
                    path.unlink()
                path = Path(folder, f"history{case.suffix}")
                generate.write(case.spec, path)
                made = case.spec, case.suffix
            found = measured(case, path, asked.times)
            judged, peaks = found
            print(
                f"{case.name}: {judged.seconds:.1f} s, {judged.cpu_s:.1f} s of CPU time,"
                f" {case.spec.operations / judged.seconds:,.0f} operations/s,"
                f" driver {peaks.driver:.0f} MB, JVM {peaks.java:.0f} MB, worker"
                f" {peaks.python:.0f} MB",
                flush=True,
            )
            if case.executor == "spark" and case.suffix == ".parquet":
                even_s[case.spec] = judged.seconds
            for bar in bars(case, found, even_s.get(replace(case.spec, hot=0.0))):
                missed += not bar.is_met
                verdict = "met   " if bar.is_met else "MISSED"
                print(f"  {verdict} {bar.what}: {bar.figure:,.1f} {bar.unit} ({bar.wanted})")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
