"""Judges Parquet files of objects, several times each, and prints what it took as JSON.

A process of its own, so that its largest memory is that of judging.
"""

import os
import sys
import time
from pathlib import Path

import msgspec

from bench.spark.memory import sample
from checkers import objects
from checkers.linearizability.columnar import Columns


class Judged(msgspec.Struct):
    """What judging a file took."""

    seconds: list[float]
    verdict: objects.ObjectVerdict
    peak_mb: float
    """The largest memory of the process so far."""
    base_mb: float
    """That before it judged anything."""
    steps: int = 0
    """Configurations that a search entered."""


def judge(path: Path, model: str, rounds: int) -> Judged:
    """Judge a file."""
    seconds, base_mb = list[float](), sample(os.getpid()).driver
    for _ in range(rounds):
        begin = time.perf_counter()
        judged = objects.judged(Columns(path), model)
        seconds.append(time.perf_counter() - begin)
    assert judged.judgement is not None
    steps = sum(part.steps for part in judged.judgement.parts)
    return Judged(seconds, judged.verdict, sample(os.getpid()).driver, base_mb, steps)


if __name__ == "__main__":
    found = judge(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    sys.stdout.write(msgspec.json.encode(found).decode())
