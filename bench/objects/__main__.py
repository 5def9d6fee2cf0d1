"""``python -m bench.objects``: large histories of objects, judged from Parquet files.

Histories of up to ten million operations with unique values, with one key and with a thousand
operations a key, are generated and judged in processes of their own; the median of the rounds
counts. One wrong result among a million operations must be found. Exit status 1: a bar is missed,
or a verdict is wrong.
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

from bench.nodes import ROOT
from bench.objects import histories
from bench.objects.judge import Judged
from bench.table import Bar
from checkers.linearizability import columnar
from checkers.linearizability.operations import Operation

SIZES = (10**5, 10**6, 10**7)
PER_KEY = 1000
RATE = 5e6
"""Operations per second."""
GROWTH = 1.3
"""By how much the time per operation may grow from the smallest history to the largest."""
MUST = ("register", "fifo-queue")
"""The models that must reach the rate; it is reported for the others."""
PLANTED = 10**6
SEED = 20261127


class Row(NamedTuple):
    """A history that was judged."""

    kind: str
    count: int
    keys: int
    file_mb: float
    judged: Judged

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.count / median(self.judged.seconds)

    @property
    def what(self) -> str:
        """The model and the keys."""
        return f"{self.kind}, {'one key' if self.keys == 1 else 'many keys'}"


def run(path: Path, model: str, rounds: int) -> Judged:
    """Judge a file in a process of its own."""
    command = [sys.executable, "-m", "bench.objects.judge", str(path), model, str(rounds)]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(out, type=Judged)


def measured(
    folder: Path, kinds: Sequence[str], sizes: Sequence[int], rounds: int
) -> Iterator[Row]:
    """Generate and judge the histories of each kind and size."""
    path = folder / "history.parquet"
    for kind in kinds:
        for count in sizes:
            for keys in (1, max(count // PER_KEY, 2)):
                histories.write(path, histories.generate(kind, count, keys, SEED))
                # small histories need more rounds for a median that says anything
                judged = run(path, kind, max(rounds, min(10**6 // count, 15)))
                yield Row(kind, count, keys, path.stat().st_size / 1e6, judged)


def planted(folder: Path, kinds: Sequence[str], count: int) -> Iterator[tuple[str, bool, Judged]]:
    """Judge a history of each kind with one wrong result; say whether it was named."""
    path = folder / "planted.parquet"
    for kind in kinds:
        for keys in (1, max(count // PER_KEY, 2)):
            history, named = histories.plant(histories.generate(kind, count, keys, SEED), SEED)
            histories.write(path, history)
            judged = run(path, kind, 1)
            is_found = judged.verdict.valid is False and any(
                each in line for line in judged.verdict.why for each in named
            )
            yield f"{kind}, {'one key' if keys == 1 else 'many keys'}", is_found, judged


def searched(folder: Path, count: int = 18) -> Judged:
    """Judge a history that needs a search: an odd number is read while even ones are added, so that
    all of their sums are tried."""
    path = folder / "search.parquet"
    adds = [Operation("add", 2 << number, number, 100 + number, number) for number in range(count)]
    columnar.write(path, [*adds, Operation("read", 3, 50, 60, len(adds))])
    return run(path, "linearizable-counter", 1)


def bars(rows: Sequence[Row]) -> Iterator[Bar]:
    """Return what must hold for the largest histories."""
    largest, smallest = max(row.count for row in rows), min(row.count for row in rows)
    of = {(row.what, row.count): row for row in rows}
    for row in rows:
        if row.count < largest:
            continue
        if row.kind in MUST:
            yield Bar(f"{row.what}", "operations/s", row.rate, RATE)
        growth = of[row.what, smallest].rate / row.rate
        yield Bar(f"{row.what}: time per operation, large to small", "", growth, GROWTH, True)


def main() -> int:
    """Generate, judge and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=histories.KINDS, default=histories.KINDS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--planted", type=float, default=PLANTED)
    asked = parser.parse_args()
    rows, wrong = list[Row](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| history | operations | keys | file, MB | s | operations/s | peak memory, MB |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for row in measured(folder, asked.kinds, list(map(int, asked.sizes)), asked.rounds):
            rows.append(row)
            wrong += row.judged.verdict.valid is not True
            seconds, peak = median(row.judged.seconds), row.judged.peak_mb
            print(
                f"| {row.what} | {row.count:,} | {row.keys:,} | {row.file_mb:.1f} | {seconds:.3f}"
                f" | {row.rate:,.0f} | {peak:,.0f} (at first {row.judged.base_mb:,.0f}) |",
                flush=True,
            )
        print("\n| one wrong result in | found | s | peak memory, MB |\n|---|---|---:|---:|")
        for what, is_found, judged in planted(folder, asked.kinds, int(asked.planted)):
            wrong += not is_found
            times = f"{judged.seconds[0]:.2f} | {judged.peak_mb:,.0f}"
            print(f"| {what} | {'yes' if is_found else 'NO'} | {times} |", flush=True)
        search = searched(folder)
        steps = search.steps / search.seconds[0]
        print(f"\nA search entered {search.steps:,} configurations, {steps:,.0f} per second.")
    found = list(bars(rows))
    for bar in found:
        verdict = "met   " if bar.is_met else "MISSED"
        print(f"{verdict} {bar.what}: {bar.figure:,.3g} {bar.unit}".rstrip() + f" ({bar.wanted})")
    for row in rows:
        if row.kind not in MUST and row.count == max(each.count for each in rows):
            share = row.rate / RATE
            reaches = "reaches" if share >= 1 else "misses"
            print(f"{row.what} {reaches} {RATE:,.0f} operations/s: {share:.0%} of it")
    if wrong:
        print(f"{wrong} verdicts are wrong")
    return int(bool(wrong) or not all(bar.is_met for bar in found))


if __name__ == "__main__":
    sys.exit(main())
