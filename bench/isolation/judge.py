"""Judges a Parquet file of transactions on lists, and prints what that took as JSON.

    python -m bench.isolation.judge inline|spark history.parquet [ROUNDS]

A process of its own, so that its largest memory is that of judging. A session of Spark starts
before the clock does.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.spark.memory import sample
from checkers import objects
from checkers.distributed.runner import Runner
from checkers.isolation.columnar import ListFile


class Judged(msgspec.Struct):
    """What judging a file took."""

    seconds: list[float]
    verdict: objects.ObjectVerdict
    peak_mb: float
    """The largest memory of the process so far."""


@contextmanager
def _runner(executor: str, size: int) -> Iterator[Runner | None]:
    if executor == "inline":
        yield None
        return
    from checkers import session
    from checkers.distributed.on_spark import OnSpark

    with tempfile.TemporaryDirectory() as home:
        started = session.start(Path(home), memory_bytes=session.memory_for(size))
        try:
            yield OnSpark(started, lambda done: None)
        finally:
            session.stop(started)


def judge(executor: str, path: Path, rounds: int) -> Judged:
    """Judge a file."""
    seconds = list[float]()
    with _runner(executor, path.stat().st_size) as runner:
        for _ in range(rounds):
            begin = time.perf_counter()
            verdict = objects.check(ListFile(path), "list-append", runner=runner)
            seconds.append(time.perf_counter() - begin)
        return Judged(seconds, verdict, sample(os.getpid()).driver)


if __name__ == "__main__":
    found = judge(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 1)
    sys.stdout.write(msgspec.json.encode(found).decode())
