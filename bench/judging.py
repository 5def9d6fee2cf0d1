"""What judging takes: CPU seconds of many keys, and memory for many operations.

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
"""Judging so many takes what the interpreter and its libraries take."""


class Judged(msgspec.Struct):
    """What a process took that judged one history."""

    cpu_s: float
    """Also of the process that reads half of a large file."""
    peak_mb: float
    """The most memory that it had at a time."""


def with_readers(keys: int) -> Iterator[Op]:
    """A record for each key, and a process that is assigned that key alone and reads it to its
    end."""
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
    """Writers and readers of some keys, as the workload ``idempotent`` has them."""
    made = World(random.Random(1), keys=12, writers=8, doubt=0.002, restarts=0.0)
    return made.events(operations)


def judge(path: Path) -> Judged:
    """Judge a history of which nothing is wrong, in a process of its own."""
    command = (sys.executable, "-m", "bench.judging", str(path))
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Judged)


def cpu_s(folder: Path, keys: int) -> float:
    """CPU seconds of judging so many keys with a reader each."""
    path = folder / "keys.jsonl"
    history.write(path, with_readers(keys))
    judged = judge(path)
    path.unlink()
    return judged.cpu_s


def peak_mb(folder: Path, operations: int) -> float:
    """Memory of judging plain operations beyond that of judging a few, for each million."""
    peaks = []
    for count in (FEW_OPERATIONS, operations):
        path = folder / "operations.jsonl"
        history.write(path, plain(count))
        peaks.append(judge(path).peak_mb)
        path.unlink()
    few, many = peaks
    return (many - few) * 1e6 / operations


def main() -> None:
    """Judge the history that is named, and print what it took."""
    verdict = check.judge(Path(sys.argv[1]), inline=True)
    assert verdict.valid is True, f"it is correct: {verdict.anomalies} {verdict.unknown_because}"
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # ru_maxrss also counts the process that this one was forked from; this does not.
    status = Path("/proc/self/status").read_text().splitlines()
    [peak_kb] = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
    judged = Judged(sum(one.ru_utime + one.ru_stime for one in used), peak_kb * 1024 / 1e6)
    print(msgspec.json.encode(judged).decode())


if __name__ == "__main__":
    main()
