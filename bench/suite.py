"""Defines what is measured, in which order, and what is promised about it.

Every round measures every variant once, one after the other, so that any other load of the machine
affects all of them alike.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from bench import coordination, judging, librdkafka, raw
from bench.nodes import TICK_MS, Node, Nodes
from bench.table import Bar, Series

SIZES = {"1 KB": 1000, "100 B": 100}
"""The sizes of record values in bytes."""
ONE = "1 KB"
CLIENTS = {"librdkafka": librdkafka, "raw": raw}
LONE, LONE_TOPIC = "lone produce, acks=all", "lone-produce"
REPLICATED = "RF 3, acks=all"
TRANSACTIONS = "transactions of 10 records to 3 partitions, RF 3"
REBALANCE, REBALANCE_MEMBERS, REBALANCE_PARTITIONS = "rebalance", 4, 32
FAILOVER = "failover to the next transaction"
SESSION_S = 6.0
"""The ZooKeeper session timeout where the failure of a broker must be noticed."""
IDLE = "memory of an idle broker"
IDLE_S = 60.0
IDLE_PARTITIONS = 10
MANY_KEYS = "judging of 100,000 keys with a reader each"
MANY_OPERATIONS = "memory of judging, for each 10^6 operations"

METHOD = (
    "1 KB is a value of 1,000 bytes, 100 B one of 100; MB are 10^6 bytes of values. Clients, "
    "brokers and ZooKeeper share the same cores; no fsync is called, which is Kafka's default.",
    "A round measures every variant once, one after the other. A figure is the median over the "
    "rounds, a share the median of the shares within each round. A small round before the "
    "first is not counted. Each round writes to its own topics and removes them.",
    "Produce: librdkafka, `Producer.produce_batch` of 2,000 records a call, one producer, one "
    "partition, no compression; from the first call to the last acknowledgement.",
    "The null broker is this broker's event loop, codec and request handling without a log. The "
    "bare append writes the same bytes to a file of the same disk in blocks of 1 MB.",
    "Consume: the records that were produced just before, from the page cache; from the "
    "assignment to the last record. librdkafka: `Consumer.consume` of 2,000 records a call, "
    "each a Python object, with fetch.queue.backoff.ms=1 and queued.min.messages=20000. raw: "
    "this project's codec on a blocking socket, with two fetches of 1 MB in progress, which "
    "reads only the headers of batches. Where librdkafka's row has the client at a full core "
    "and the broker at a fraction of one, the client limits the rate, and the raw row is the "
    "broker's rate.",
    "Three brokers: replication factor 3, acks=all, default settings.",
    (
        "A lone produce: one record of 1 KB with acks=all; the next record is sent when it is "
        "acknowledged, linger 0."
    ),
    "Transactions: one librdkafka producer, one transaction after another; 100 B values, linger 0.",
    f"Rebalance: {REBALANCE_MEMBERS} librdkafka consumers share {REBALANCE_PARTITIONS} "
    "partitions, group.initial.rebalance.delay.ms=0, "
    f"heartbeat.interval.ms={coordination.HEARTBEAT_MS}; from the last consumer's subscribe "
    "until each has its share.",
    "Failover: the leader of a partition is killed, in a separate cluster with "
    f"zookeeper.session.timeout.ms={SESSION_S * 1000:.0f} and a tick of {TICK_MS} ms; until "
    f"librdkafka, which looks for a leader every {coordination.LOOK_MS} ms, has committed the "
    "next transaction.",
    f"Memory: RSS of the only broker of a cluster, {IDLE_PARTITIONS} partitions with 2,000 records "
    f"in each, idle since then, at least {IDLE_S:.0f} s after its start.",
    "Judging, without Spark: CPU seconds for 100,000 keys with one record each, each read to "
    "its end by a process that is assigned the key; extrapolated from fewer keys. Memory: the "
    f"judge's peak resident memory, less that of judging {judging.FEW_OPERATIONS} operations, "
    "where writers and readers share 12 keys.",
    "Cores used: CPU seconds per second of the measurement; the client is the benchmark itself.",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    rounds: int
    counts: Mapping[str, int]
    """The number of records in one produce measurement, by size."""
    replicated: int
    """The number of records in one replicated produce measurement."""
    alone: int
    """The number of single-record produces in one round."""
    transactions: int
    """The number of transactions in one round."""
    keys: int
    """The number of partitions in the history that has a reader for each partition."""
    operations: int
    """The number of operations in the history that is judged to measure memory."""


FULL = Extent(5, {"1 KB": 600_000, "100 B": 3_000_000}, 300_000, 1000, 500, 100_000, 1_000_000)
SHORT = Extent(1, {"1 KB": 100_000, "100 B": 500_000}, 50_000, 200, 100, 10_000, 200_000)


class Notes:
    """Collects figures as they are measured."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._values: dict[str, list[float]] = {}
        self._units: dict[str, str] = {}
        self._cpu_s: dict[str, dict[str, float]] = {}
        self._wall_s: dict[str, float] = {}

    def add(self, what: str, unit: str, value: float) -> None:
        """Add a figure of this series."""
        self._values.setdefault(what, []).append(value)
        self._units[what] = unit
        self._say(f"{what}: {value:,.4g} {unit}")

    def rate(
        self,
        what: str,
        megabytes: float,
        measure: Callable[[], float],
        nodes: Mapping[str, Sequence[Node]],
    ) -> float:
        """Measure a rate and the CPU time: ``measure`` returns the seconds for ``megabytes``."""
        before = {name: _cpu_s(group) for name, group in nodes.items()}
        client, begun = time.process_time(), time.perf_counter()
        rate = megabytes / measure()
        self._wall_s[what] = self._wall_s.get(what, 0.0) + time.perf_counter() - begun
        used = {"client": time.process_time() - client}
        used |= {name: _cpu_s(group) - before[name] for name, group in nodes.items()}
        total = self._cpu_s.setdefault(what, {})
        for name, seconds in used.items():
            total[name] = total.get(name, 0.0) + seconds
        self.add(what, "MB/s", rate)
        return rate

    def series(self) -> tuple[Series, ...]:
        """Return all series."""
        return tuple(
            Series(
                what,
                self._units[what],
                tuple(values),
                tuple(
                    (name, seconds / self._wall_s[what])
                    for name, seconds in self._cpu_s.get(what, {}).items()
                ),
            )
            for what, values in self._values.items()
        )


def measure(folder: Path, extent: Extent, say: Callable[[str], None]) -> tuple[Series, ...]:
    """Measure every figure, with temporary files in this folder."""
    notes = Notes(say)
    with Nodes(folder) as nodes:
        _throughput(nodes, folder, extent, notes)
    with Nodes(folder) as nodes:
        _replication(nodes, extent, notes)
    with Nodes(folder) as nodes:
        _coordination(nodes, extent, notes)
    for number in range(extent.rounds):
        with Nodes(folder) as nodes:
            _failover(nodes, f"failover-{number}", notes)
    with Nodes(folder) as nodes:
        _memory(nodes, notes)
    for _ in range(extent.rounds):
        seconds = judging.cpu_s(folder, extent.keys)
        notes.add(MANY_KEYS, "CPU s", seconds * 100_000 / extent.keys)
        notes.add(MANY_OPERATIONS, "MB", judging.peak_mb(folder, extent.operations))
    return notes.series()


def bars(series: Sequence[Series]) -> tuple[Bar, ...]:
    """Return every promise with its result."""
    of = {row.what: row for row in series}

    def share(what: str, other: str) -> float:
        """Return a ratio in percent: the median over rounds of figures measured in succession."""
        pairs = zip(of[what].values, of[other].values, strict=True)
        return 100 * median(ours / theirs for ours, theirs in pairs)

    return (
        *(
            Bar(
                f"produce {size}: share of the null broker's rate",
                "%",
                share(f"produce {size}, broker", f"produce {size}, null broker"),
                50,
            )
            for size in SIZES
        ),
        Bar("produce 1 KB", "MB/s", of["produce 1 KB, broker"].typical, 300),
        Bar(
            "produce 100 B",
            "records/s",
            of["produce 100 B, broker"].typical * 1e6 / SIZES["100 B"],
            800_000,
        ),
        *(
            Bar(
                f"consume {size}, {client}: share of produce's rate",
                "%",
                share(f"consume {size}, {client}", f"produce {size}, broker"),
                100,
            )
            for size in SIZES
            for client in CLIENTS
        ),
        Bar(
            f"produce {ONE}, {REPLICATED}", "MB/s", of[f"produce {ONE}, {REPLICATED}"].typical, 100
        ),
        *(
            Bar(
                f"{LONE}, {client}: p50",
                "ms",
                of[f"{LONE}, {client}: p50"].typical,
                1,
                at_most=True,
            )
            for client in CLIENTS
        ),
        Bar(TRANSACTIONS, "transactions/s", of[TRANSACTIONS].typical, 100),
        Bar(REBALANCE, "ms", of[REBALANCE].typical, 1000, at_most=True),
        Bar(FAILOVER, "s", of[FAILOVER].typical, SESSION_S + 2, at_most=True),
        Bar(IDLE, "MB", of[IDLE].typical, 80, at_most=True),
        Bar(MANY_KEYS, "CPU s", of[MANY_KEYS].typical, 60, at_most=True),
        Bar(MANY_OPERATIONS, "MB", of[MANY_OPERATIONS].typical, 400, at_most=True),
    )


def _throughput(nodes: Nodes, folder: Path, extent: Extent, notes: Notes) -> None:
    null = nodes.null_broker([_topic(size, "null") for size in SIZES])
    (broker,) = nodes.cluster("single", 1)
    warming_up = Notes(lambda line: None)
    for size in SIZES:
        _round(null, broker, folder / "append", size, SHORT.counts[size], -1, warming_up)
    for number in range(extent.rounds):
        for size in SIZES:
            _round(null, broker, folder / "append", size, extent.counts[size], number, notes)


def _round(
    null: Node, broker: Node, scratch: Path, size: str, count: int, number: int, notes: Notes
) -> None:
    topic, megabytes = _topic(size, str(number)), count * SIZES[size] / 1e6
    librdkafka.create(broker.address, topic)

    produce = partial(librdkafka.produce, value_bytes=SIZES[size], count=count, acks="1")
    notes.rate(
        f"produce {size}, null broker",
        megabytes,
        partial(produce, null.address, _topic(size, "null")),
        {"broker": [null]},
    )
    produced = notes.rate(
        f"produce {size}, broker",
        megabytes,
        partial(produce, broker.address, topic),
        {"broker": [broker]},
    )
    append = partial(_append, scratch, int(megabytes))
    appended = notes.rate(f"append {size}, bare file", megabytes, append, {})
    notes.add(f"produce {size}: share of the bare append's rate", "%", 100 * produced / appended)
    for name, client in CLIENTS.items():
        consume = partial(client.consume, broker.address, topic, count=count)
        notes.rate(f"consume {size}, {name}", megabytes, consume, {"broker": [broker]})
    librdkafka.delete(broker.address, topic)


def _append(path: Path, megabytes: int) -> float:
    """Return the seconds to append this many blocks of 1 MB to a new file."""
    block = b"x" * 1_000_000
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    try:
        begun = time.perf_counter()
        for _ in range(megabytes):
            os.write(descriptor, block)
        return time.perf_counter() - begun
    finally:
        os.close(descriptor)
        path.unlink()


def _replication(nodes: Nodes, extent: Extent, notes: Notes) -> None:
    brokers = nodes.cluster("replicated", 3)
    address = ",".join(broker.address for broker in brokers)
    librdkafka.create(address, LONE_TOPIC, replicas=3)
    for number in range(extent.rounds):
        for partitions in (1, 6):
            topic = f"replicated-{partitions}-{number}"
            librdkafka.create(address, topic, partitions=partitions, replicas=3)
            leader = raw.leader(brokers[0].address, topic)
            groups: dict[str, Sequence[Node]] = {"brokers": brokers}
            if partitions == 1:
                groups = {
                    "leader": [broker for broker in brokers if broker.address == leader],
                    "followers": [broker for broker in brokers if broker.address != leader],
                }
            produce = partial(
                librdkafka.produce,
                address,
                topic,
                value_bytes=SIZES[ONE],
                count=extent.replicated,
                acks="all",
                partitions=partitions,
            )
            megabytes = extent.replicated * SIZES[ONE] / 1e6
            spread = f", {partitions} partitions" if partitions > 1 else ""
            notes.rate(f"produce {ONE}, {REPLICATED}{spread}", megabytes, produce, groups)
            librdkafka.delete(address, topic)
        for name, client in CLIENTS.items():
            took = client.produce_alone(
                brokers[0].address, LONE_TOPIC, value_bytes=SIZES[ONE], count=extent.alone
            )
            cuts = quantiles(took, n=100)
            notes.add(f"{LONE}, {name}: p50", "ms", cuts[49] * 1000)
            notes.add(f"{LONE}, {name}: p99", "ms", cuts[98] * 1000)


def _coordination(nodes: Nodes, extent: Extent, notes: Notes) -> None:
    brokers = nodes.cluster("coordinating", 3, {"group.initial.rebalance.delay.ms": 0})
    address = ",".join(broker.address for broker in brokers)
    shared = "rebalanced"
    librdkafka.create(address, shared, partitions=REBALANCE_PARTITIONS, replicas=3)
    for number in range(extent.rounds):
        topic = f"transactions-{number}"
        librdkafka.create(address, topic, partitions=3, replicas=3)
        producer = coordination.producer(address, topic)
        took_s = coordination.transactions(producer, topic, count=extent.transactions, partitions=3)
        notes.add(TRANSACTIONS, "transactions/s", extent.transactions / took_s)
        del producer
        librdkafka.delete(address, topic)
        took_s = coordination.rebalance(
            address, shared, members=REBALANCE_MEMBERS, partitions=REBALANCE_PARTITIONS
        )
        notes.add(REBALANCE, "ms", took_s * 1000)


def _failover(nodes: Nodes, name: str, notes: Notes) -> None:
    settings = {"zookeeper.session.timeout.ms": int(SESSION_S * 1000)}
    brokers = nodes.cluster(name, 3, settings)
    address = ",".join(broker.address for broker in brokers)
    librdkafka.create(address, name, partitions=3, replicas=3)
    leader = raw.leader(brokers[0].address, name)
    [victim] = [broker for broker in brokers if broker.address == leader]
    producer = coordination.producer(address, name)
    took_s = coordination.failover(producer, name, lambda: nodes.kill(victim), partitions=3)
    notes.add(FAILOVER, "s", took_s)


def _memory(nodes: Nodes, notes: Notes) -> None:
    (broker,) = nodes.cluster("idle", 1)
    started = time.monotonic()
    librdkafka.create(broker.address, "idle", partitions=IDLE_PARTITIONS)
    librdkafka.produce(
        broker.address,
        "idle",
        value_bytes=1,
        count=librdkafka.CALL_RECORDS * IDLE_PARTITIONS,
        acks="1",
        partitions=IDLE_PARTITIONS,
    )
    time.sleep(max(0.0, started + IDLE_S - time.monotonic()))
    notes.add(IDLE, "MB", broker.resident_mb())


def _topic(size: str, name: str) -> str:
    return f"{SIZES[size]}-bytes-{name}"


def _cpu_s(nodes: Sequence[Node]) -> float:
    return sum(node.cpu_s() for node in nodes)
