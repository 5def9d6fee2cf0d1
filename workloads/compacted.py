"""Compacted topics: record keys are written again and again, deleted, and read from the beginning.

Every record replaces the one before it with the same record key (``model.record_keys``), so the
cleaner may remove old ones, and does: segments are small and it runs often. Writers send single
records or transactions, of which many are aborted; some (``keyless_p``) try to send records without
a key, which no compacted topic accepts. Readers read everything from the beginning to the end,
start over, and read it again; for each record key they must then have what was last written to it.
They read slowly, so that a log is compacted while they are in the middle of it. Meanwhile topics
may lose ``compact`` from their ``cleanup.policy``, and get it back (``policies_s``).
"""

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from model import options, record_keys
from model.connection import Connection
from model.generator import (
    PENDING,
    Answer,
    AnyOf,
    Context,
    Generator,
    Invocation,
    Repeat,
    Reserve,
    Stagger,
    Until,
    Wait,
)
from model.op import MicroOp, Op
from model.plan import Plan
from model.roles import Client
from workloads import needs
from workloads.client import transaction
from workloads.client.common import Settings
from workloads.common import settings, transactional
from workloads.common.options import COMMON_LEAST
from workloads.common.partitions import created
from workloads.common.reading import Watchers, read_to_ends
from workloads.common.topics import Topics, first_partitions, topic_settings, topics_of
from workloads.package import Workload

LEAST: Mapping[str, float] = {
    **COMMON_LEAST,
    "keys": 1,
    "delete_p": 0.0,
    "keyless_p": 0.0,
    "txn_p": 0.0,
    "txn_length_max": 1,
    "abort_p": 0.0,
    "delay_p": 0.0,
    "delay_max_ms": 1,
    "new_id_p": 0.0,
    "polls_hz": 0.01,
    "segment_bytes": 512,
    "segment_ms": 1,
    "dirty_ratio": 0.0,
    "delete_retention_ms": 0,
}
"""The smallest number that each of the plan's options may be."""

SHARES = ("delete_p", "keyless_p", "txn_p", "dirty_ratio")
"""Options that are probabilities, or parts of a whole, in addition to those of transactions."""

DELETE_RETENTION_MS = 86_400_000
"""Kafka's default: no tombstone and no marker is removed during a run."""

WATCHES_HZ = 1.0
"""How often per second watermarks are requested."""


class Writers(msgspec.Struct, frozen=True):
    """Writes record keys of one partition at a time, or of several in a transaction."""

    batch_max: int
    record_keys: int
    delete_p: float
    keyless_p: float
    txn_p: float
    length_max: int
    abort_p: float
    delay_p: float
    delay_max_ms: int
    new_id_p: float
    keys: tuple[str, ...] = ()
    next_numbers: dict[str, int] = msgspec.field(default_factory=dict)
    ready: frozenset[int] = frozenset()
    """Processes with a transactional id; used for membership tests only."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        rng, process = ctx.rng, ctx.rng.choice(ctx.free)
        numbers = dict(self.next_numbers)
        if rng.random() >= self.txn_p:
            key = rng.choice(self.keys)
            count = rng.randint(1, self.batch_max)
            value = [self._send(rng, key, numbers) for _ in range(count)]
            if rng.random() < self.keyless_p:
                number = self.next_numbers[key]
                value = [
                    ["send", key, record_keys.value_of(number, record_keys.NO_KEY, deletes=False)]
                ]
            later = msgspec.structs.replace(self, next_numbers=numbers)
            return Invocation(process=process, f="send", value=value), later
        if process not in self.ready:
            init = [transactional.identity(ctx, process, self.new_id_p)]
            return Invocation(process=process, f="init", value=init), self
        row = [
            self._send(rng, rng.choice(self.keys), numbers)
            for _ in range(rng.randint(1, self.length_max))
        ]
        if rng.random() < self.delay_p:
            row.insert(rng.randint(0, len(row)), ["delay", None, rng.randint(1, self.delay_max_ms)])
        if rng.random() < self.abort_p:
            row.append(["abort"])
        later = msgspec.structs.replace(self, next_numbers=numbers)
        return Invocation(process=process, f="txn", value=row), later

    def update(self, event: Op) -> Generator:
        if new := created(event):
            next_numbers = self.next_numbers | dict.fromkeys(new, 0)
            return msgspec.structs.replace(self, keys=(*self.keys, *new), next_numbers=next_numbers)
        if event.f == "init" and event.type == "ok":
            return msgspec.structs.replace(self, ready=self.ready | {event.process})
        return self

    def _send(self, rng: random.Random, key: str, numbers: dict[str, int]) -> MicroOp:
        deletes = rng.random() < self.delete_p
        value = record_keys.value_of(numbers[key], rng.randrange(self.record_keys), deletes=deletes)
        numbers[key] += 1
        return ["send", key, value]


class Policies(msgspec.Struct, frozen=True):
    """Removes ``compact`` from the policies of all existing topics, restores it, and so on."""

    due: tuple[float, ...]
    """The times of the changes, in seconds since the run began."""
    is_compacted: bool = True
    """Do the topics have ``compact``, once all requests are done?"""
    topics: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """The topics that are still to change."""

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        if self.left:
            topic, *rest = self.left
            what = "compacted" if self.is_compacted else "uncompacted"
            process = ctx.rng.choice(ctx.free)
            later = msgspec.structs.replace(self, left=tuple(rest))
            return Invocation(process=process, f="alter-topic", value=[[what, topic]]), later
        if not self.due:
            return PENDING, self
        if self.due[0] > ctx.now_s:
            return Wait(self.due[0]), self
        later = msgspec.structs.replace(
            self, due=self.due[1:], is_compacted=not self.is_compacted, left=self.topics
        )
        return later.op(ctx) if later.left else (PENDING, later)

    def update(self, event: Op) -> Generator:
        if event.f == "create-topic" and event.type == "ok":
            topics = dict.fromkeys((*self.topics, *(topic for _, topic, _ in event.value)))
            return msgspec.structs.replace(self, topics=tuple(topics))
        return self


class Rereaders(msgspec.Struct, frozen=True):
    """Reads every partition to its end, ends the process, and begins again with a new one."""

    keys: tuple[str, ...] = ()
    left: dict[int, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The partitions that each process has not read to their ends."""
    idle: frozenset[int] = frozenset()
    """Processes whose last poll returned nothing; used for membership tests only."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        left = self.left.get(process)
        if left is None:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        if not left:
            return Invocation(process=process, f="crash", value=None), self
        if process not in self.idle:
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        value = [["catch-up", ctx.rng.choice(left)]]
        return Invocation(process=process, f="catch-up", value=value), self

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(self, keys=(*self.keys, *new))
        process = frozenset({event.process})
        match event.f, event.type:
            case "assign", "ok":
                left = self.left | {event.process: tuple(event.value)}
                return msgspec.structs.replace(self, left=left)
            case "poll", "ok":
                brought = any(event.value[-1][1].values())
                idle = self.idle - process if brought else self.idle | process
                return msgspec.structs.replace(self, idle=idle)
            case "catch-up", "ok" if event.process in self.left:
                rest = tuple(key for key in self.left[event.process] if key != event.value[0][1])
                left = self.left | {event.process: rest}
                return msgspec.structs.replace(self, left=left, idle=self.idle - process)
            case "catch-up", "fail":
                return msgspec.structs.replace(self, idle=self.idle - process)
            case _, "info":
                left = {p: keys for p, keys in self.left.items() if p != event.process}
                return msgspec.structs.replace(self, left=left, idle=self.idle - process)
            case _:
                return self


def _readers(plan: Plan) -> int:
    """Return how many of the threads read: about half, at least one, and never all."""
    return max(1, min(plan.concurrency - 1, plan.concurrency // 2))


def main(plan: Plan) -> Generator:
    """Run writers and readers until the time limit."""
    asked = plan.options
    readers = _readers(plan)
    writers = plan.concurrency - readers
    gap_s = float(asked["process_life_s"]) / writers
    work = Writers(
        batch_max=int(asked["batch_max"]),
        record_keys=int(asked["keys"]),
        delete_p=float(asked["delete_p"]),
        keyless_p=float(asked["keyless_p"]),
        txn_p=float(asked["txn_p"]),
        length_max=int(asked["txn_length_max"]),
        abort_p=float(asked["abort_p"]),
        delay_p=float(asked["delay_p"]),
        delay_max_ms=int(asked["delay_max_ms"]),
        new_id_p=float(asked["new_id_p"]),
    )
    topics = Topics(topics_of(plan), int(asked["partitions"]), "create-compacted")
    writing = AnyOf(
        (
            topics,
            Stagger(gap_s, Repeat("crash"), next_s=gap_s),
            Stagger(1 / WATCHES_HZ, Watchers()),
            Policies(tuple(asked["policies_s"])),
            Stagger(1 / plan.rate_hz, work),
        )
    )
    reading = Stagger(1 / float(asked["polls_hz"]), Rereaders())
    return Until(plan.time_limit_s, Reserve(((writers, writing), (readers, reading))))


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make = transactional.CLIENTS[plan.options["client"]]
    topic = topic_settings(plan) | {
        "cleanup.policy": "compact",
        "segment.bytes": str(plan.options["segment_bytes"]),
        "segment.ms": str(plan.options["segment_ms"]),
        "min.cleanable.dirty.ratio": str(plan.options["dirty_ratio"]),
        "delete.retention.ms": str(plan.options["delete_retention_ms"]),
    }
    return make(Settings.of(plan, connection, process, topic))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: compacted needs at least 2, a writer and a reader"
    if (misfit := options.refusal(plan.options, LEAST)) is not None:
        return misfit
    for name in SHARES:
        if plan.options[name] > 1:
            return f"options: {name}={plan.options[name]}: must be from 0 to 1"
    policies_s = plan.options["policies_s"]
    if not all(isinstance(at_s, int | float) for at_s in policies_s):
        return f"options: policies_s={policies_s}: must be a list of times in seconds"
    if policies_s and plan.options["keyless_p"]:
        return (
            "options: policies_s: must be empty with keyless_p, because topics accept records"
            " without keys while their cleanup.policy is not compact"
        )
    if plan.options["keys"] > record_keys.NO_KEY:
        return f"options: keys={plan.options['keys']}: must be at most {record_keys.NO_KEY}"
    return transactional.refuse_transactions(plan)


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than the longest transaction: each of its steps has a time limit."""
    sends_s = int(plan.producer["delivery.timeout.ms"]) / 1000 * int(plan.options["txn_length_max"])
    delay_s = int(plan.options["delay_max_ms"]) / 1000
    return sends_s + delay_s + 4 * transaction.end_timeout_s(plan.producer) + 15.0


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw how much is replaced, deleted and aborted, the size of segments, and poll rates.

    Without transactions, tombstones are kept for a day or for two seconds; the checkers know it.
    """
    timeout_ms = rng.choice((1000, 1000, 2000, 4000))
    settings = dict.fromkeys(("transaction.timeout.ms", "delivery.timeout.ms"), str(timeout_ms))
    settings |= dict.fromkeys(("request.timeout.ms", "socket.timeout.ms"), str(timeout_ms - 100))
    drawn: dict[str, Any] = {
        "keys": rng.choice((2, 4, 12, 50)),
        "delete_p": rng.choice((0.05, 0.2, 0.4)),
        "keyless_p": rng.choice((0.0, 0.0, 0.05)),
        "txn_p": rng.choice((0.0, 0.3, 0.7, 1.0)),
        "abort_p": rng.choice((0.1, 0.3, 0.6)),
        "delay_p": rng.choice((0.1, 0.4)),
        "delay_max_ms": rng.choice((100, timeout_ms, 2 * timeout_ms)),
        "new_id_p": rng.choice((0.0, 0.25, 0.75)),
        "segment_bytes": rng.choice((2048, 4096, 16384)),
        "dirty_ratio": rng.choice((0.01, 0.01, 0.3)),
        "polls_hz": rng.choice((4.0, 10.0, 20.0)),
    }
    consumer = {"max.partition.fetch.bytes": rng.choice(("1024", "4096", "1048576"))}
    broker = {"log.cleaner.backoff.ms": rng.choice(("100", "300", "2000"))}
    if gap_s := rng.choice((0.0, 0.0, 3.0, 10.0)):
        drawn |= {"keyless_p": 0.0, "policies_s": [gap_s * number for number in (1, 2, 3, 4)]}
    # aiokafka cannot read a control batch whose marker was removed, as Java's client once could not
    # (KAFKA-7467).
    short_ms = rng.choice((DELETE_RETENTION_MS, 2000))
    drawn["delete_retention_ms"] = DELETE_RETENTION_MS if drawn["txn_p"] else short_ms
    return {"producer": settings, "options": drawn, "consumer": consumer, "broker": broker}


WORKLOAD = Workload(
    name="compacted",
    rate_hz=150.0,
    options={
        "client": "librdkafka",
        "topics": 1,
        "late_topics": 1,
        "partitions": 2,
        "replication_factor": 3,
        "replicas": [],
        "keys": 8,
        "batch_max": 6,
        "delete_p": 0.2,
        "keyless_p": 0.0,
        "txn_p": 0.4,
        "txn_length_max": 4,
        "abort_p": 0.3,
        "delay_p": 0.2,
        "delay_max_ms": 800,
        "new_id_p": 0.25,
        "polls_hz": 20.0,
        # The times at which topics lose compact from their cleanup.policy, get it back, and so on.
        "policies_s": [],
        "segment_bytes": 4096,
        "segment_ms": 5000,
        "dirty_ratio": 0.01,
        # A day, as in Kafka: no tombstone is removed within a run, whatever clock faults there are.
        "delete_retention_ms": DELETE_RETENTION_MS,
        "process_life_s": 10.0,
        "final_time_limit_s": 60.0,
    },
    broker={**transactional.BROKER, "log.cleaner.backoff.ms": "300"},
    producer=transactional.PRODUCER,
    consumer={
        **settings.CONSUMER,
        "isolation.level": "read_committed",
        # Small fetches, so that a log changes while it is read.
        "max.partition.fetch.bytes": "4096",
    },
    refuse=refuse,
    needs=needs.of_compaction,
    main=main,
    final=read_to_ends,
    client=client,
    op_timeout_s=op_timeout_s,
    topics=first_partitions,
    coordinators=transactional.coordinators,
    trigger_ops=("txn",),
    vary=vary,
)
