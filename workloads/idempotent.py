"""Idempotent producers write unique numbers to several partitions, which consumers read.

Each writing process uses one partition for its whole life and sends one or more records to it at a
time. The consumers use manual assignment. A process is replaced after an operation whose outcome is
unknown, a rejected send, or a planned ``crash``, so that producers also start during faults. Some
topics are created during the run. Writers may also delete records; the poll of a reader whose next
records are deleted has the outcome ``info``. At the end, new processes read every partition from
the log start up to the high watermark.
"""

import random
from typing import Any

import msgspec

from model import options
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
)
from model.op import Op
from model.plan import Plan
from model.roles import Client
from workloads.client.common import Settings
from workloads.common.clients import CLIENTS
from workloads.common.deletion import DELETES_HZ, DELETIONS, deleting
from workloads.common.options import COMMON_LEAST, refuse_cluster, send_timeout_s
from workloads.common.partitions import created
from workloads.common.reading import CatchUp, Readers
from workloads.common.settings import BROKER, CONSUMER, PRODUCER
from workloads.common.topics import Topics, first_partitions, topic_settings, topics_of
from workloads.package import Workload


def _ends(event: Op) -> bool:
    """Return whether the process of this event will invoke no further operations."""
    return event.type == "info" or (event.type == "fail" and event.f == "send")


class Senders(msgspec.Struct, frozen=True):
    """Sends ascending numbers, and lets each process write to one partition only.

    A process keeps its partition for its whole life. Several processes can write to the same
    partition, and send different numbers: the next numbers of the partition.
    """

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
        """Choose a partition for a process.

        Mostly this is a partition that the fewest processes have chosen, so that every partition is
        written. Otherwise it is a random one, so that several processes write to one partition.
        """
        if ctx.rng.random() < 0.25:
            return ctx.rng.choice(self.keys)
        least = min(self.chosen.values())
        return ctx.rng.choice([key for key in self.keys if self.chosen[key] == least])


def _readers(plan: Plan) -> int:
    """Return the number of threads that read: about a third, at least one, and never all."""
    return max(1, min(plan.concurrency - 1, round(plan.concurrency / 3)))


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


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make, _ = CLIENTS[plan.options["client"]]
    return make(Settings.of(plan, connection, process, topic_settings(plan)))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: idempotent needs at least 2, a writer and a reader"
    return options.refusal(plan.options, {**COMMON_LEAST, **DELETIONS}) or refuse_cluster(plan)


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw whether and how often records are deleted."""
    return {"options": {"deletes_hz": rng.choice(DELETES_HZ)}}


WORKLOAD = Workload(
    name="idempotent",
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
    broker=BROKER,
    producer=PRODUCER,
    consumer=CONSUMER,
    refuse=refuse,
    main=main,
    final=final,
    client=client,
    op_timeout_s=send_timeout_s,
    topics=first_partitions,
    vary=vary,
)
