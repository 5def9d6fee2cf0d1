"""``python -m bench.beside_kafka``: this project's broker next to Apache Kafka 2.8.2, in one run.

Exit status 1: a promise was not kept. Needs Java, and downloads the jars once by Maven.
"""

import argparse
import asyncio
import datetime
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import msgspec
import psutil

from bench import apache_kafka, coordination, librdkafka, raw
from bench.__main__ import CORES, machine, say
from bench.nodes import ROOT, Node, Nodes
from bench.suite import CLIENTS, ONE, REPLICATED, SIZES, TRANSACTIONS, Notes
from bench.table import Bar, Result, Series
from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import jars, jvm

RELEASE = "2.8.2"
OURS, APACHE = "ours", "Kafka"
PRODUCE = f"produce {ONE}, RF 1"
LONE_P50 = "lone produce, acks=all, raw: p50"
PRODUCE_MIN, CONSUME_MIN, LONE_MAX, TRANSACTIONS_MIN = 1.2, 1.0, 1.0, 2.0

METHOD = (
    "For each kind, one cluster of one broker and one of three, with default settings and this "
    "project's ZooKeeper. Kafka's brokers have the options of their own start script and a heap of "
    f"{apache_kafka.HEAP_MB} MB. Brokers and client share the same cores.",
    "A round measures ours and Kafka's, one after the other. A figure is the median over the "
    "rounds, a ratio the median of the ratios within each round. A round before the first is not "
    "counted, so that Java has compiled its code. Each round writes to its own topics.",
    f"Produce: librdkafka, values of {SIZES[ONE]:,} bytes, one producer, one partition, no "
    "compression; with RF 1 acks=1. Consume: the records that were produced just before; raw is "
    "this project's codec on a blocking socket, which reads only the headers of batches.",
    "A lone produce: one record with acks=all and RF 3; the next record is sent when it is "
    "acknowledged. Transactions: one librdkafka producer, one transaction after another, linger 0.",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    rounds: int
    count: int
    """The number of records in one measurement with RF 1."""
    replicated: int
    """The number of records in one measurement with RF 3."""
    alone: int
    """The number of single-record produces in one round."""
    transactions: int


FULL = Extent(5, 300_000, 150_000, 1000, 200)
SHORT = Extent(1, 50_000, 20_000, 200, 30)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of one kind."""

    kind: str
    single: Sequence[Node]
    replicated: Sequence[Node]


def measure(
    folder: Path, extent: Extent, classpath: Sequence[Path], say: Callable[[str], None]
) -> tuple[Series, ...]:
    """Measure every figure of both kinds, with temporary files in this folder."""
    notes, unnoted = Notes(say), Notes(lambda _: None)
    with Nodes(folder) as nodes:
        kafka = partial(apache_kafka.cluster, nodes, folder, release=RELEASE, classpath=classpath)
        both = (
            Clusters(OURS, nodes.cluster("ours-1", 1), nodes.cluster("ours-3", 3)),
            Clusters(APACHE, kafka("kafka-1", 1), kafka("kafka-3", 3)),
        )
        for clusters in both:
            _round(clusters, extent, 0, unnoted)
        say("the round that is not counted has ended")
        for number in range(1, extent.rounds + 1):
            for clusters in both:
                _round(clusters, extent, number, notes)
    return notes.series()


def _round(clusters: Clusters, extent: Extent, number: int, notes: Notes) -> None:
    kind, topic = clusters.kind, f"round-{number}"
    _throughput(kind, clusters.single, topic, extent.count, notes)
    brokers = {"brokers": clusters.replicated}
    address = ",".join(node.address for node in clusters.replicated)
    librdkafka.create(address, topic, partitions=3, replicas=3)
    produce = partial(
        librdkafka.produce,
        address,
        topic,
        value_bytes=SIZES[ONE],
        count=extent.replicated,
        acks="all",
    )
    megabytes = extent.replicated * SIZES[ONE] / 1e6
    notes.rate(f"produce {ONE}, {REPLICATED}, {kind}", megabytes, produce, brokers)
    first = clusters.replicated[0].address
    took = raw.produce_alone(first, topic, value_bytes=SIZES[ONE], count=extent.alone)
    notes.add(f"{LONE_P50}, {kind}", "ms", quantiles(took, n=100)[49] * 1000)
    producer = coordination.producer(address, topic)
    seconds = coordination.transactions(producer, topic, count=extent.transactions, partitions=3)
    notes.add(f"{TRANSACTIONS}, {kind}", "transactions/s", extent.transactions / seconds)
    librdkafka.delete(address, topic)


def _throughput(kind: str, brokers: Sequence[Node], topic: str, count: int, notes: Notes) -> None:
    """Produce to one broker, and consume that again."""
    address, used = brokers[0].address, {"broker": brokers}
    megabytes = count * SIZES[ONE] / 1e6
    librdkafka.create(address, topic)
    produce = partial(
        librdkafka.produce, address, topic, value_bytes=SIZES[ONE], count=count, acks="1"
    )
    notes.rate(f"{PRODUCE}, {kind}", megabytes, produce, used)
    for name, client in CLIENTS.items():
        consume = partial(client.consume, address, topic, count=count)
        notes.rate(f"consume {ONE}, {name}, {kind}", megabytes, consume, used)
    librdkafka.delete(address, topic)


def bars(series: Sequence[Series]) -> tuple[Bar, ...]:
    """Return every promise with its result."""
    of = {row.what: row for row in series}

    def bar(what: str, limit: float, *, at_most: bool = False) -> Bar:
        """Return the bar for the median of ours to Kafka's within each round."""
        pairs = zip(of[f"{what}, {OURS}"].values, of[f"{what}, {APACHE}"].values, strict=True)
        ratio = median(mine / theirs for mine, theirs in pairs)
        return Bar(f"{what}: ours to Kafka's", "x", ratio, limit, at_most=at_most)

    return (
        bar(PRODUCE, PRODUCE_MIN),
        bar(f"produce {ONE}, {REPLICATED}", PRODUCE_MIN),
        *(bar(f"consume {ONE}, {name}", CONSUME_MIN) for name in CLIENTS),
        bar(LONE_P50, LONE_MAX, at_most=True),
        bar(TRANSACTIONS, TRANSACTIONS_MIN),
    )


def main() -> int:
    """Measure, print the table and store it."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside_kafka", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure one small round only")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "bench-beside-kafka")
    options = parser.parse_args()
    extent = SHORT if options.short else FULL
    begun = datetime.datetime.now(datetime.UTC)
    others = psutil.cpu_percent(1.0) * psutil.cpu_count() / 100
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    classpath = asyncio.run(jars.resolve(RELEASE, say, PRODUCT))
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        facts = (
            ("date", f"{begun:%Y-%m-%d %H:%M} UTC"),
            ("machine", machine(Path(folder), len(cores))),
            ("versions", f"Apache Kafka {RELEASE}, {_java()}"),
            ("load before the start", f"other processes used {others:.2f} cores"),
            ("rounds", str(extent.rounds)),
        )
        series = measure(Path(folder), extent, classpath, say)
    result = Result(facts, METHOD, series, bars(series))
    page = result.markdown()
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / f"{begun:%Y%m%dT%H%M%SZ}.md"
    target.write_text(page)
    target.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print(page)
    say(f"stored in {target} and .json")
    return 0 if result.all_met else 1


def _java() -> str:
    output = subprocess.run((jvm.find(), "-version"), capture_output=True, text=True, check=True)
    return output.stderr.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
