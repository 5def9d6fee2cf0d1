"""``python -m bench.isolation``: large histories of transactions on lists, from Parquet files.

Histories are judged in processes of their own, in one process and on Spark; the median of the
rounds counts. A history with planted anomalies must show exactly these. Exit status 1: a bar is
missed, or a verdict is wrong.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.isolation import generate
from bench.isolation.judge import Judged
from bench.nodes import ROOT
from bench.spark.memory import Peaks, Sampler
from bench.table import Bar

INLINE, SPARK = (10**5, 10**6, 10**7), (10**7,)
"""Numbers of transactions."""
RATE, MEMORY_MB, SPARK_S, GROWTH = 5e5, 600.0, 60.0, 1.3
"""Transactions per second, memory per million of them, the time on Spark for ten million, and by
how much the time per transaction may grow from the smallest history to the largest."""
MILLION, TEN_MILLION = 10**6, 10**7
PLANTED = {"G-single-item": 1, "incompatible-order": 1, "lost-update": 1, "G1a": 1, "G2-item": 1}
SEED = 20261127


class Row(NamedTuple):
    """A history that was judged."""

    executor: str
    count: int
    planted: bool
    judged: Judged
    peaks: Peaks

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.judged.seconds)

    @property
    def rate(self) -> float:
        """Transactions per second."""
        return self.count / self.seconds

    @property
    def what(self) -> str:
        """Where it was judged, and how large it is."""
        return f"{self.executor}, {self.count:,} transactions{', planted' * self.planted}"

    @property
    def is_right(self) -> bool:
        """Whether the verdict is that of the generator."""
        found = self.judged.verdict
        return found.valid is not self.planted and found.anomalies == (
            PLANTED if self.planted else {}
        )


def run(executor: str, path: Path, rounds: int) -> tuple[Judged, Peaks]:
    """Judge a file in a process of its own."""
    command = [sys.executable, "-m", "bench.isolation.judge", executor, str(path), str(rounds)]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process,
        Sampler(process.pid) as sampler,
    ):
        out = process.communicate()[0]
    return msgspec.json.decode(out, type=Judged), sampler.peaks


def measured(
    folder: Path, sizes: Sequence[tuple[str, Sequence[int]]], rounds: int
) -> Iterator[Row]:
    """Generate and judge the histories."""
    path = folder / "history.parquet"
    for count in sorted({count for _, some in sizes for count in some}):
        for planted in (False, True):
            generate.write(path, count, planted=planted, seed=SEED)
            for executor, some in sizes:
                if count in some:
                    # small histories need more rounds for a median that says anything
                    times = max(rounds, min(MILLION // count, 9)) if executor == "inline" else 1
                    yield Row(executor, count, planted, *run(executor, path, times))


def bars(rows: Sequence[Row]) -> Iterator[Bar]:
    """Return what must hold."""
    of = {(row.executor, row.count): row for row in rows if not row.planted}
    inline = [row for row in rows if row.executor == "inline" and not row.planted]
    if row := of.get(("inline", MILLION)):
        yield Bar(row.what, "transactions/s", row.rate, RATE)
        yield Bar(f"{row.what}: memory", "MB", row.judged.peak_mb, MEMORY_MB, True)
    if row := of.get(("spark", TEN_MILLION)):
        yield Bar(f"{row.what}: time", "s", row.seconds, SPARK_S, True)
    if len(inline) > 1:
        small, large = (pick(inline, key=lambda row: row.count) for pick in (min, max))
        growth = small.rate / large.rate
        yield Bar("inline: time per transaction, large to small", "", growth, GROWTH, True)


def main() -> int:
    """Generate, judge and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--inline", type=float, nargs="*", default=INLINE, metavar="COUNT")
    parser.add_argument("--spark", type=float, nargs="*", default=SPARK, metavar="COUNT")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    sizes = [(name, [*map(int, getattr(asked, name))]) for name in ("inline", "spark")]
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as name:
        print("| history | s | transactions/s | this process, MB | JVM, MB | worker, MB |")
        print("|---|---:|---:|---:|---:|---:|")
        for row in measured(Path(name), sizes, asked.rounds):
            rows.append(row)
            memory = f"{row.judged.peak_mb:,.0f} | {row.peaks.java:,.0f} | {row.peaks.python:,.0f}"
            print(f"| {row.what} | {row.seconds:.2f} | {row.rate:,.0f} | {memory} |", flush=True)
    found = list(bars(rows))
    for bar in found:
        verdict = "met   " if bar.is_met else "MISSED"
        print(f"{verdict} {bar.what}: {bar.figure:,.3g} {bar.unit}".rstrip() + f" ({bar.wanted})")
    wrong = [row.what for row in rows if not row.is_right]
    for what in wrong:
        print(f"WRONG: {what}")
    return int(bool(wrong) or not all(bar.is_met for bar in found))


if __name__ == "__main__":
    sys.exit(main())
