"""``python -m bench``: measures everything that is promised about speed and memory, in one table.

Exit status 1: a promise was not kept.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import confluent_kafka
import msgspec
import psutil

from bench import suite
from bench.nodes import ROOT
from bench.table import Result

CORES = 2


def main() -> int:
    """Measure, print the table and store it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--short",
        action="store_true",
        help="measure one small round only, as a check that the benchmark works",
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "bench")
    options = parser.parse_args()
    extent = suite.SHORT if options.short else suite.FULL
    begun = datetime.datetime.now(datetime.UTC)
    others = psutil.cpu_percent(1.0) * psutil.cpu_count() / 100
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        facts = (
            ("date", f"{begun:%Y-%m-%d %H:%M} UTC"),
            ("machine", machine(Path(folder), len(cores))),
            ("versions", _versions()),
            ("load before the start", f"other processes used {others:.2f} cores"),
            ("rounds", str(extent.rounds)),
        )
        series = suite.measure(Path(folder), extent, say)
    result = Result(facts, suite.METHOD, series, suite.bars(series))
    page = result.markdown()
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / f"{begun:%Y%m%dT%H%M%SZ}.md"
    target.write_text(page)
    target.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print(page)
    say(f"stored in {target} and .json")
    return 0 if result.all_met else 1


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def machine(folder: Path, cores: int) -> str:
    """Describe the machine, and the disk of a folder."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    mounts = [
        part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)
    ]
    filesystem = max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else "?"
    memory = psutil.virtual_memory().total / 1e9
    return (
        f"{cores} cores of {psutil.cpu_count()} ({model}), {memory:.0f} GB, "
        f"{platform.system()} {platform.release()}, data on {filesystem}"
    )


def _versions() -> str:
    commit = subprocess.run(
        ("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return (
        f"faultline {commit or '?'}, {platform.python_implementation()} "
        f"{platform.python_version()}, confluent-kafka {confluent_kafka.version()}, "
        f"librdkafka {confluent_kafka.libversion()[0]}"
    )


if __name__ == "__main__":
    sys.exit(main())
