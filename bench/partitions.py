"""``python -m bench.partitions``: what idle partitions cost a cluster, up to 2,000 of them.

Three brokers replicate every partition. The same is measured with 10, 400 and 2,000 partitions, of
which few are used. Exit status 1: a promise was not kept. ``--without-sessions`` also measures the
largest number without incremental fetch sessions.
"""

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import msgspec
import psutil

from bench import coordination, librdkafka, raw
from bench.__main__ import CORES, machine, say
from bench.nodes import ROOT, Node, Nodes
from bench.suite import Notes
from bench.table import Bar, Result, Series

SIZES = (10, 400, 2000)
"""The numbers of partitions, without those of internal topics."""
FEW, MANY = SIZES[0], SIZES[-1]
TOPIC = "many"
SLOTS = "max.incremental.fetch.session.cache.slots"
P50_FACTOR_MAX, TRANSACTIONS_PERCENT, IDLE_PERCENT_MAX = 1.5, 80, 5
TRANSACTION_PARTITIONS = 3
SETTLING_S = 5.0

METHOD = (
    "Three brokers with replication factor 3 and default settings, ZooKeeper and the client share "
    "the same cores. One topic has all partitions; only the first three are used. A round "
    "starts a new cluster for each number of partitions.",
    "A lone produce: one record of 1,000 bytes with acks=all to one partition; the next record is "
    "sent when it is acknowledged. The client is this project's codec on a blocking socket.",
    "Transactions: one librdkafka producer, one transaction of 10 records of 100 bytes to 3 "
    "partitions after another, linger 0.",
    f"Idle: CPU seconds per second of the busiest broker, from {SETTLING_S:.0f} s after the last "
    "transaction on, without any client. Topics of coordinators have 50 partitions each.",
    "Without sessions: the brokers have no slots for incremental fetch sessions, so that each "
    "fetch of a follower names all partitions.",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    rounds: int
    alone: int
    """The number of single-record produces in one round."""
    transactions: int
    """The number of transactions in one round."""
    idle_s: float
    """For how long idle brokers are observed."""


FULL = Extent(3, 1000, 300, 30.0)
SHORT = Extent(1, 200, 50, 10.0)


def p50_of(name: str) -> str:
    """The name of a figure."""
    return f"lone produce, acks=all, {name}: p50"


def transactions_of(name: str) -> str:
    """The name of a figure."""
    return f"transactions, {name}"


def idle_of(name: str) -> str:
    """The name of a figure."""
    return f"idle broker, {name}"


def with_partitions(count: int) -> str:
    """How the figures call a cluster with this many partitions."""
    return f"{count:,} partitions"


def measure(
    folder: Path, extent: Extent, say: Callable[[str], None], *, without_sessions: bool
) -> tuple[Series, ...]:
    """Measure every figure, with temporary files in this folder."""
    notes = Notes(say)
    for number in range(extent.rounds):
        for count in SIZES:
            _cluster(folder, f"{count}-{number}", count, {}, extent, with_partitions(count), notes)
        if without_sessions:
            name = f"{with_partitions(MANY)} without sessions"
            _cluster(folder, f"full-{number}", MANY, {SLOTS: 0}, extent, name, notes)
    return notes.series()


def bars(series: Sequence[Series]) -> tuple[Bar, ...]:
    """Return every promise with its result."""
    of = {row.what: row for row in series}
    few, many = with_partitions(FEW), with_partitions(MANY)

    def ratio(what: Callable[[str], str]) -> float:
        """Return the median over rounds of the figure with many partitions by that with few."""
        pairs = zip(of[what(many)].values, of[what(few)].values, strict=True)
        return median(with_many / with_few for with_many, with_few in pairs)

    return (
        Bar(
            f"{p50_of(many)}, by that with {FEW}",
            "times",
            ratio(p50_of),
            P50_FACTOR_MAX,
            at_most=True,
        ),
        Bar(
            f"{transactions_of(many)}: share of those with {FEW}",
            "%",
            100 * ratio(transactions_of),
            TRANSACTIONS_PERCENT,
        ),
        Bar(
            idle_of(many), "% of a core", of[idle_of(many)].typical, IDLE_PERCENT_MAX, at_most=True
        ),
    )


def _cluster(
    folder: Path,
    name: str,
    partitions: int,
    settings: Mapping[str, object],
    extent: Extent,
    what: str,
    notes: Notes,
) -> None:
    with Nodes(folder) as nodes:
        brokers = nodes.cluster(name, 3, settings)
        address = ",".join(broker.address for broker in brokers)
        librdkafka.create(address, TOPIC, partitions=partitions, replicas=3)
        raw.produce_alone(brokers[0].address, TOPIC, value_bytes=1000, count=extent.alone // 10)
        took = raw.produce_alone(brokers[0].address, TOPIC, value_bytes=1000, count=extent.alone)
        cuts = quantiles(took, n=100)
        notes.add(p50_of(what), "ms", cuts[49] * 1000)
        notes.add(f"lone produce, acks=all, {what}: p99", "ms", cuts[98] * 1000)
        producer = coordination.producer(address, name)
        took_s = coordination.transactions(
            producer, TOPIC, count=extent.transactions, partitions=TRANSACTION_PARTITIONS
        )
        notes.add(transactions_of(what), "transactions/s", extent.transactions / took_s)
        del producer
        time.sleep(SETTLING_S)
        notes.add(idle_of(what), "% of a core", 100 * _busiest(brokers, extent.idle_s))


def _busiest(brokers: Sequence[Node], seconds: float) -> float:
    """Return the CPU seconds per second of the broker that uses most."""
    before = [broker.cpu_s() for broker in brokers]
    begun = time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - begun
    return max(
        (broker.cpu_s() - used) / passed for broker, used in zip(brokers, before, strict=True)
    )


def main() -> int:
    """Measure, print the table and store it."""
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure one small round only")
    parser.add_argument(
        "--without-sessions",
        action="store_true",
        help=f"also measure {MANY:,} partitions without incremental fetch sessions",
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "bench-partitions")
    options = parser.parse_args()
    extent = SHORT if options.short else FULL
    begun = datetime.datetime.now(datetime.UTC)
    others = psutil.cpu_percent(1.0) * psutil.cpu_count() / 100
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        facts = (
            ("date", f"{begun:%Y-%m-%d %H:%M} UTC"),
            ("machine", machine(Path(folder), len(cores))),
            ("load before the start", f"other processes used {others:.2f} cores"),
            ("rounds", str(extent.rounds)),
        )
        series = measure(Path(folder), extent, say, without_sessions=options.without_sessions)
    result = Result(facts, METHOD, series, bars(series))
    page = result.markdown()
    options.results.mkdir(parents=True, exist_ok=True)
    target = options.results / f"{begun:%Y%m%dT%H%M%SZ}.md"
    target.write_text(page)
    target.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print(page)
    say(f"stored in {target} and .json")
    return 0 if result.all_met else 1


if __name__ == "__main__":
    sys.exit(main())
