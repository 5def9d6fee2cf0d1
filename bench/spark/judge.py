"""Judges one history in this process, and prints how long that took and what was found.

    python -m bench.spark.judge inline|spark history.parquet

A session of Spark starts before the clock does.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.app import check


class Judged(msgspec.Struct):
    """One judgement."""

    seconds: float
    cpu_s: float
    """CPU time of this process, and of those that it has started and that have ended; on Spark,
    executors use more."""
    valid: bool | str
    anomalies: dict[str, int]
    operations: int
    unknown_because: tuple[str, ...] = ()


@contextmanager
def _session(executor: str, size: int) -> Iterator[Any]:
    if executor == "inline":
        yield None
        return
    from checkers import session

    with tempfile.TemporaryDirectory() as home:
        started = session.start(Path(home), memory_bytes=session.memory_for(size))
        try:
            yield started
        finally:
            session.stop(started)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Judge the named history."""
    executor, path = sys.argv[1], Path(sys.argv[2])
    with _session(executor, path.stat().st_size) as session:
        began, cpu = time.monotonic(), _cpu_s()
        verdict = check.judge(path, inline=session is None, session=session)
        judged = Judged(
            seconds=time.monotonic() - began,
            cpu_s=_cpu_s() - cpu,
            valid=verdict.valid,
            anomalies=verdict.anomalies,
            operations=verdict.evidence.get("ops", 0),
            unknown_because=verdict.unknown_because,
        )
    print(msgspec.json.encode(judged).decode())


if __name__ == "__main__":
    main()
