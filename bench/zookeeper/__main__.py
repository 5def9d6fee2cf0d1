"""``python -m bench.zookeeper``: this project's ensemble next to Apache ZooKeeper's, in one run.

Exit status 1: a promise was not kept. Needs Java, and downloads the jars once by Maven.
"""

import argparse
import asyncio
import datetime
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import psutil

from bench.__main__ import CORES, machine, say
from bench.nodes import ROOT
from bench.table import Result
from bench.zookeeper import suite
from bench.zookeeper.servers import apache, ours
from harness.systems.apache_zookeeper.releases import PRODUCT
from harness.systems.java import jars, jvm

RELEASE = "3.9.3"


def main() -> int:
    """Measure, print the table and store it."""
    parser = argparse.ArgumentParser(prog="python -m bench.zookeeper", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure one small round only")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "bench-zookeeper")
    options = parser.parse_args()
    extent = suite.SHORT if options.short else suite.FULL
    begun = datetime.datetime.now(datetime.UTC)
    others = psutil.cpu_percent(1.0) * psutil.cpu_count() / 100
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    classpath = asyncio.run(jars.resolve(RELEASE, say, PRODUCT))
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        facts = (
            ("date", f"{begun:%Y-%m-%d %H:%M} UTC"),
            ("machine", machine(Path(folder), len(cores))),
            ("versions", _versions()),
            ("load before the start", f"other processes used {others:.2f} cores"),
            ("rounds", str(extent.rounds)),
        )
        commands = {suite.OURS: ours, suite.APACHE: apache(classpath)}
        series = asyncio.run(suite.measure(Path(folder), extent, commands, say))
    result = Result(facts, suite.METHOD, series, suite.bars(series))
    page = result.markdown()
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / f"{begun:%Y%m%dT%H%M%SZ}.md"
    target.write_text(page)
    target.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print(page)
    say(f"stored in {target} and .json")
    return 0 if result.all_met else 1


def _versions() -> str:
    output = subprocess.run((jvm.find(), "-version"), capture_output=True, text=True, check=True)
    java = output.stderr.splitlines()[0]
    return f"Python {sys.version.split()[0]}, Apache ZooKeeper {RELEASE}, {java}"


if __name__ == "__main__":
    sys.exit(main())
