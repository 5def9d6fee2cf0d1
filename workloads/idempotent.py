"""Idempotent producers write unique numbers to several partitions; readers by assign follow them.

Each writing process uses one partition for its whole life and sends one or more records to it at a
time. Processes end in doubt, with a rejection, or with a planned ``crash``, so that producers also
start during faults. Some topics are created during the run. Writers may also delete records; a
reader that wants to read deleted records ends in doubt. At the end new processes read every
partition from its beginning up to the high watermark.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from model import options
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
from model.op import Op
from model.plan import Plan
from model.roles import Client
from workloads.client import aio, confluent
from workloads.client.common import Settings
from workloads.deletion import Deleters
from workloads.package import Workload

Make = Callable[[Settings], Client]
"""Makes the client of a process."""
Refusal = Callable[[Mapping[str, str], Mapping[str, str]], str | None]
"""Returns why settings of producer and consumer are rejected, or ``None``."""

CLIENTS: Mapping[str, tuple[Make, Refusal]] = {
    "librdkafka": (confluent.ConfluentClient, confluent.refusal),
    "aiokafka": (aio.AioClient, aio.refusal),
}
"""The clients, by the value of the option ``client``."""

LEAST: Mapping[str, float] = {
    "topics": 1,
    "late_topics": 0,
    "partitions": 1,
    "replication_factor": 1,
    "batch_max": 1,
    "process_life_s": 0.001,
    "final_time_limit_s": 0.001,
}
"""The smallest number that each of the plan's options may be."""

DELETIONS: Mapping[str, float] = {
    "deletes_hz": 0.0,
    "deletes_all_p": 0.0,
    "deletes_ahead_p": 0.0,
}
"""The smallest number of each option about deleted records, which only some workloads have."""
DELETES_HZ = (0.0, 0.0, 0.0, 0.15, 0.5)
"""The rates from which a search chooses."""
WATCH_SHARE = 0.25
"""How often a reader whose poll returned nothing requests watermarks.

Otherwise it checks whether it has caught up.
"""
RETRY_CREATION_S = 1.0
"""How long after a failed creation a topic is requested again."""


def keys_of(topic: str, partitions: int) -> tuple[str, ...]:
    """Return the partitions of a topic with this number of partitions."""
    return tuple(f"{topic}-{partition}" for partition in range(partitions))


def created(event: Op) -> tuple[str, ...]:
    """Return the partitions that exist from this event on."""
    if event.f != "create-topic" or event.type != "ok":
        return ()
    return tuple(key for _, topic, partitions in event.value for key in keys_of(topic, partitions))


def _ends(event: Op) -> bool:
    """Does the process of this event never act again?"""
    return event.type == "info" or (event.type == "fail" and event.f == "send")


class Topics(msgspec.Struct, frozen=True):
    """Creates each topic when it is due, and retries until it is certain that the topic exists."""

    due: tuple[tuple[float, str], ...]
    """When (in seconds since the run began) to create which topic."""
    partitions: int
    named: str = "create-topic"
    """The micro-operation; ``create-compacted`` marks compacted topics in the history."""

    def op(self, ctx: Context) -> Answer:
        if not self.due:
            return PENDING, self
        at_s, topic = min(self.due)
        if not ctx.free:
            return PENDING, self
        if at_s > ctx.now_s:
            return Wait(at_s), self
        value = [[self.named, topic, self.partitions]]
        process = ctx.rng.choice(ctx.free)
        return Invocation(process=process, f="create-topic", value=value), self

    def update(self, event: Op) -> Generator:
        if event.f != "create-topic" or event.type == "ok":
            return self
        topic = event.value[0][1]
        due = tuple(entry for entry in self.due if entry[1] != topic)
        if event.type != "invoke":
            due = (*due, (event.time_ns / 1e9 + RETRY_CREATION_S, topic))
        return msgspec.structs.replace(self, due=due)


class Senders(msgspec.Struct, frozen=True):
    """Sends the next numbers to the partition that a process has chosen for its whole life."""

    batch_max: int
    keys: tuple[str, ...] = ()
    next_values: dict[str, int] = msgspec.field(default_factory=dict)
    chosen: dict[str, int] = msgspec.field(default_factory=dict)
    """How many processes have chosen each partition so far."""
    key_of: dict[int, str] = msgspec.field(default_factory=dict)
    """The partition of each live process."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        key = self.key_of.get(process) or self._choose(ctx)
        count = ctx.rng.randint(1, self.batch_max)
        first = self.next_values[key]
        value = [["send", key, first + number] for number in range(count)]
        later = msgspec.structs.replace(self, next_values={**self.next_values, key: first + count})
        return Invocation(process=process, f="send", value=value), later

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(
                self,
                keys=(*self.keys, *new),
                next_values=self.next_values | dict.fromkeys(new, 0),
                chosen=self.chosen | dict.fromkeys(new, 0),
            )
        if event.type == "invoke" and event.f == "send" and event.process not in self.key_of:
            key = event.value[0][1]
            return msgspec.structs.replace(
                self,
                key_of=self.key_of | {event.process: key},
                chosen=self.chosen | {key: self.chosen[key] + 1},
            )
        if event.process in self.key_of and _ends(event):
            key_of = {p: key for p, key in self.key_of.items() if p != event.process}
            return msgspec.structs.replace(self, key_of=key_of)
        return self

    def _choose(self, ctx: Context) -> str:
        """Choose mostly a partition that was chosen least, so that every partition is written.

        Otherwise choose any, so that several processes write one partition.
        """
        if ctx.rng.random() < 0.25:
            return ctx.rng.choice(self.keys)
        least = min(self.chosen.values())
        return ctx.rng.choice([key for key in self.keys if self.chosen[key] == least])


class Readers(msgspec.Struct, frozen=True):
    """Reads every existing partition: assigns new ones, and polls all the time."""

    keys: tuple[str, ...] = ()
    assigned: dict[int, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The partitions of each live process."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if self.assigned.get(process) != self.keys:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        return Invocation(process=process, f="poll", value=[["poll"]]), self

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(self, keys=(*self.keys, *new))
        if event.f == "assign" and event.type == "ok":
            assigned = self.assigned | {event.process: tuple(event.value)}
            return msgspec.structs.replace(self, assigned=assigned)
        if event.type == "info" and event.process in self.assigned:
            assigned = {p: keys for p, keys in self.assigned.items() if p != event.process}
            return msgspec.structs.replace(self, assigned=assigned)
        return self


class CatchUp(msgspec.Struct, frozen=True):
    """Reads partitions from the beginning, each until some process has reached its high watermark.

    A process checks whether it has caught up whenever a poll returned nothing. A process that
    replaces another begins with an assignment of its own.
    """

    left: tuple[str, ...]
    """Partitions that no process has caught up with."""
    keys: tuple[str, ...]
    assigned: frozenset[int] = frozenset()
    """Processes with an assignment; used for membership tests only."""
    idle: frozenset[int] = frozenset()
    """Processes whose last poll returned nothing."""
    watches: bool = False
    """Are watermarks requested as well? They show what keeps a reader from catching up."""

    def op(self, ctx: Context) -> Answer:
        if not self.left:
            return None, self
        if not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if process not in self.assigned:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        if process not in self.idle:
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        key = ctx.rng.choice(self.left)
        if self.watches and ctx.rng.random() < WATCH_SHARE:
            return Invocation(process=process, f="watermarks", value=[["watermarks", key]]), self
        value = [["catch-up", key]]
        return Invocation(process=process, f="catch-up", value=value), self

    def update(self, event: Op) -> Generator:
        process = frozenset({event.process})
        match event.f, event.type:
            case "assign", "ok":
                return msgspec.structs.replace(self, assigned=self.assigned | process)
            case "poll", "ok":
                *_, (_, polled) = event.value  # the poll follows the rebalances of a member
                brought = any(polled.values())
                idle = self.idle - process if brought else self.idle | process
                return msgspec.structs.replace(self, idle=idle)
            case "catch-up", "ok":
                left = tuple(key for key in self.left if key != event.value[0][1])
                return msgspec.structs.replace(self, left=left)
            case "catch-up", "fail":
                return msgspec.structs.replace(self, idle=self.idle - process)
            case _:
                return self


def _readers(plan: Plan) -> int:
    """Return how many of the threads read: about a third, at least one, and never all."""
    return max(1, min(plan.concurrency - 1, round(plan.concurrency / 3)))


def topics_of(plan: Plan) -> tuple[tuple[float, str], ...]:
    """Return when each topic is created: some at the start, the others spread over the run."""
    early = int(plan.options["topics"])
    late = int(plan.options["late_topics"])
    gap_s = plan.time_limit_s / (late + 1)
    return tuple(
        (0.0 if number < early else (number - early + 1) * gap_s, f"topic{number}")
        for number in range(early + late)
    )


def deleting(plan: Plan) -> tuple[Generator, ...]:
    """Return the generator that deletes records, if the plan has deletions."""
    rate_hz = float(plan.options["deletes_hz"])
    all_p, ahead_p = (float(plan.options[name]) for name in ("deletes_all_p", "deletes_ahead_p"))
    deleters = Deleters(all_p, ahead_p)
    return (Stagger(1 / rate_hz, deleters, next_s=1 / rate_hz),) if rate_hz else ()


def main(plan: Plan) -> Generator:
    """Run writers and readers until the time limit."""
    readers = _readers(plan)
    writers = plan.concurrency - readers
    life_s = float(plan.options["process_life_s"])
    writing = AnyOf(
        (
            Topics(topics_of(plan), int(plan.options["partitions"])),
            Stagger(life_s / writers, Repeat("crash"), next_s=life_s / writers),
            *deleting(plan),
            Stagger(1 / plan.rate_hz, Senders(int(plan.options["batch_max"]))),
        )
    )
    return Until(plan.time_limit_s, Reserve(((writers, writing), (readers, Readers()))))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read these partitions to their ends, with as many threads as read before."""
    readers = _readers(plan)
    writers = plan.concurrency - readers
    nobody = CatchUp(left=(), keys=())
    reading = CatchUp(left=keys, keys=keys)
    return Until(until_s, Reserve(((writers, nobody), (readers, reading))))


def topic_settings(plan: Plan) -> dict[str, str]:
    """Return the settings of the topics that a process creates."""
    return {
        "replication.factor": str(plan.options["replication_factor"]),
        "replicas": " ".join(str(number) for number in plan.options["replicas"]),
    }


def client(plan: Plan, bootstrap: str, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make, _ = CLIENTS[plan.options["client"]]
    return make(Settings(bootstrap, process, plan.producer, plan.consumer, topic_settings(plan)))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: idempotent needs at least 2, a writer and a reader"
    return options.refusal(plan.options, {**LEAST, **DELETIONS}) or refuse_cluster(plan)


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw whether and how often records are deleted."""
    return {"options": {"deletes_hz": rng.choice(DELETES_HZ)}}


def refuse_cluster(plan: Plan) -> str | None:
    """Return why the plan's settings do not fit its cluster or client, or ``None``.

    The cluster must be able to acknowledge records, and the client must accept its settings.
    """
    factor = int(plan.options["replication_factor"])
    if factor > plan.brokers:
        return f"--brokers: {factor} replicas need at least {factor} brokers"
    isr_min = plan.broker.get("min.insync.replicas", "1")
    if plan.producer.get("acks") in ("all", "-1") and isr_min.isdecimal() and int(isr_min) > factor:
        return (
            f"--set broker.min.insync.replicas={isr_min}: a partition has {factor} replicas,"
            " so no record would be acknowledged"
        )
    placed = [int(number) for number in plan.options["replicas"]]
    if placed and len(placed) != factor:
        return f"options: replicas={placed}: must be {factor} brokers, as replication_factor"
    if len(set(placed)) < len(placed) or not set(placed) <= set(range(1, plan.brokers + 1)):
        return f"options: replicas={placed}: must be different brokers from 1 to {plan.brokers}"
    if plan.options["client"] not in CLIENTS:
        return f"options: client={plan.options['client']}: must be one of {', '.join(CLIENTS)}"
    _, refusal = CLIENTS[plan.options["client"]]
    return refusal(plan.producer, plan.consumer)


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than a client takes to give a record up."""
    return int(plan.producer["delivery.timeout.ms"]) / 1000 + 10.0


def first_keys(plan: Plan) -> tuple[str, ...]:
    """Return the partitions of the topics that are created at the start."""
    partitions = int(plan.options["partitions"])
    return tuple(
        key for at_s, topic in topics_of(plan) if at_s == 0 for key in keys_of(topic, partitions)
    )


WORKLOAD = Workload(
    name="idempotent",
    idea="idempotent producers write unique numbers; readers with assigned partitions read them",
    checkers=("loss", "duplicates", "offsets", "phantom", "order", "polls", "availability"),
    rate_hz=250.0,
    options={
        "client": "librdkafka",
        "topics": 3,
        "late_topics": 3,
        "partitions": 2,
        "replication_factor": 3,
        # Broker ids, the preferred leader first, for each partition; if empty, brokers choose.
        "replicas": [],
        "batch_max": 12,
        "process_life_s": 5.0,
        "final_time_limit_s": 60.0,
        # How often per second records of one partition are deleted; 0: never.
        "deletes_hz": 0.0,
        # The shares of deletions of all known records, and of deletions beyond the known end.
        "deletes_all_p": 0.4,
        "deletes_ahead_p": 0.25,
    },
    broker={
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "auto.create.topics.enable": "false",
    },
    producer={
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": "0",
        # Short, so that a fault that is shorter than a test has visible effects.
        "request.timeout.ms": "3000",
        "delivery.timeout.ms": "10000",
        "socket.timeout.ms": "4000",
        "socket.connection.setup.timeout.ms": "2000",
        "topic.metadata.refresh.interval.ms": "2000",
        "topic.metadata.propagation.max.ms": "10000",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        "retry.backoff.ms": "50",
        "retry.backoff.max.ms": "500",
    },
    consumer={
        "isolation.level": "read_uncommitted",
        "enable.auto.commit": "false",
        # A position outside the log must be reported, not reset.
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": "100",
        "fetch.error.backoff.ms": "100",
        "socket.timeout.ms": "4000",
        "socket.connection.setup.timeout.ms": "2000",
        "topic.metadata.refresh.interval.ms": "2000",
        "topic.metadata.propagation.max.ms": "10000",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
    },
    refuse=refuse,
    main=main,
    final=final,
    client=client,
    op_timeout_s=op_timeout_s,
    topics=first_keys,
    vary=vary,
)
