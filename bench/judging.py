"""Measures the cost of judging: CPU seconds for many partitions, and memory for many operations.

    python -m bench.judging history.jsonl

judges a history in this process and prints both.
"""

import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.histories import World
from bench.nodes import ROOT
from harness.app import check
from model import history
from model.op import Op

FEW_OPERATIONS = 100
"""A history so small that judging it costs only the interpreter and its libraries."""


class Judged(msgspec.Struct):
    """The cost of a process that judged one history."""

    cpu_s: float
    """Includes the CPU time of the process that reads half of a large file."""
    peak_mb: float
    """The peak of its resident memory."""


def with_readers(keys: int) -> Iterator[Op]:
    """Yield a history with one record per partition, and one process per partition.

    Each process is assigned that partition alone and reads it to its end.
    """
    events: list[tuple[int, str, Any, Any]] = []

    def operation(process: int, f: str, asked: Any, answered: Any) -> None:
        events.append((process, f, "invoke", asked))
        events.append((process, f, "ok", answered))

    for key in range(keys):
        name = f"t-{key}"
        operation(0, "send", [["send", name, 0]], [["send", name, [0, 0]]])
    for key in range(keys):
        name = f"t-{key}"
        operation(1 + key, "assign", [name], [name])
        operation(1 + key, "poll", [["poll"]], [["poll", {name: [[0, 0]]}]])
        operation(1 + key, "catch-up", [["catch-up", name]], [["catch-up", name, 1, 1]])
    for index, (process, f, kind, value) in enumerate(events):
        yield Op(index=index, time_ns=index * 1000, process=process, type=kind, f=f, value=value)


def plain(operations: int) -> Iterator[Op]:
    """Yield a history of writers and readers like those of the ``idempotent`` workload."""
    made = World(random.Random(1), keys=12, writers=8, doubt=0.002, restarts=0.0)
    return made.events(operations)


def judge(path: Path) -> Judged:
    """Judge a correct history in a process of its own."""
    command = (sys.executable, "-m", "bench.judging", str(path))
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Judged)


def cpu_s(folder: Path, keys: int) -> float:
    """Return the CPU seconds of judging this many partitions with a reader each."""
    path = folder / "keys.jsonl"
    history.write(path, with_readers(keys))
    judged = judge(path)
    path.unlink()
    return judged.cpu_s


def peak_mb(folder: Path, operations: int) -> float:
    """Return the memory per million operations, beyond that of judging a few operations."""
    peaks = []
    for count in (FEW_OPERATIONS, operations):
        path = folder / "operations.jsonl"
        history.write(path, plain(count))
        peaks.append(judge(path).peak_mb)
        path.unlink()
    few, many = peaks
    return (many - few) * 1e6 / operations


def main() -> None:
    """Judge the named history, and print the cost."""
    verdict = check.judge(Path(sys.argv[1]), inline=True)
    assert verdict.valid is True, (
        f"the history is correct, but the verdict is not: {verdict.anomalies} "
        f"{verdict.unknown_because}"
    )
    used = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # ru_maxrss also counts the process that this one was forked from; VmHWM does not.
    status = Path("/proc/self/status").read_text().splitlines()
    [peak_kb] = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
    judged = Judged(sum(one.ru_utime + one.ru_stime for one in used), peak_kb * 1024 / 1e6)
    print(msgspec.json.encode(judged).decode())


if __name__ == "__main__":
    main()
