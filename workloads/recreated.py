"""Topics are deleted and created again under the same name; no record may survive its topic.

Each incarnation of a topic has its own partition names in histories (``model.topic_incarnation``),
and a record names the partition that it was written to, so a record that survives its topic is a
phantom. All topics are deleted together. Every process ends before that, so that no consumer keeps
a position in a deleted topic. A topic is not deleted if one of its sends is in doubt or was perhaps
sent twice: what is still in flight would reach the next topic of that name, in Kafka, too.
"""

import dataclasses
import random
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from model import options, topic_incarnation
from model.generator import (
    PENDING,
    Answer,
    AnyOf,
    Context,
    Generator,
    Invocation,
    Reserve,
    Stagger,
    Until,
    Wait,
)
from model.op import Op
from model.plan import Plan
from workloads import idempotent, needs
from workloads.common.options import COMMON_LEAST, refuse_cluster
from workloads.common.partitions import partitions_of
from workloads.common.reading import CatchUp, Readers
from workloads.idempotent import Senders

LEAST: Mapping[str, float] = {
    **{name: COMMON_LEAST[name] for name in ("topics", "partitions", "replication_factor")},
    **{name: COMMON_LEAST[name] for name in ("batch_max", "final_time_limit_s")},
    "life_s": 0.001,
}
"""The smallest number that each of the plan's options may be."""

RETRY_S = 0.5
"""How long after a creation or deletion without a certain success to try again."""

Phase = Literal["create", "work", "end", "delete", "stay"]


class Cycle(msgspec.Struct, frozen=True):
    """Creates topics, runs the work, ends all processes, deletes the topics, and repeats."""

    born: Generator
    """The work at the beginning of an incarnation."""
    life_s: float
    request_timeout_s: float
    """A send that takes longer has been sent again, and its first attempt may still arrive."""
    partitions: int
    until_s: float
    """The time limit; topics are deleted only if new ones can exist for ``life_s`` before it."""
    topics: tuple[str, ...]
    """The names of the topics in this incarnation."""
    work: Generator
    left: tuple[str, ...]
    """Topics that are still to be created, or deleted."""
    phase: Phase = "create"
    due_s: float = 0.0
    """When to try again, or when this incarnation ends."""
    is_asking: bool = False
    used: frozenset[int] = frozenset()
    """Processes that have acted in this incarnation."""
    doubts: bool = False
    """May a request of this incarnation still be in flight?"""
    sending: Mapping[int, int] = msgspec.field(default_factory=dict)
    """Since when each process waits for acknowledgements, in nanoseconds."""

    def op(self, ctx: Context) -> Answer:
        match self.phase:
            case "create" | "delete":
                return self._topic(ctx)
            case "work" if ctx.now_s >= self.due_s:
                phase: Phase = "stay" if self._is_last(ctx.now_s) else "end"
                return msgspec.structs.replace(self, phase=phase).op(ctx)
            case "work" | "stay":
                answer, work = self.work.op(ctx)
                later = msgspec.structs.replace(self, work=work)
                if self.phase == "stay":
                    return answer, later
                if isinstance(answer, Invocation) and answer.at_s < self.due_s:
                    return answer, later
                if isinstance(answer, Wait):
                    return Wait(min(answer.until_s, self.due_s)), later
                return Wait(self.due_s), self
            case "end":
                return self._end(ctx)

    def _is_last(self, now_s: float) -> bool:
        return self.doubts or now_s + self.life_s > self.until_s

    def _topic(self, ctx: Context) -> Answer:
        if self.is_asking or not ctx.free:
            return PENDING, self
        if ctx.now_s < self.due_s:
            return Wait(self.due_s), self
        name, topic = f"{self.phase}-topic", self.left[0]
        value = [name, topic] if self.phase == "delete" else [name, topic, self.partitions]
        return Invocation(process=ctx.rng.choice(ctx.free), f=name, value=[value]), self

    def _end(self, ctx: Context) -> Answer:
        if len(ctx.free) < ctx.concurrency:
            return PENDING, self
        if self.doubts:
            return msgspec.structs.replace(self, phase="stay").op(ctx)
        ended = [process for process in ctx.free if process in self.used]
        if ended:
            return Invocation(process=ended[0], f="crash"), self
        return msgspec.structs.replace(self, phase="delete", left=self.topics).op(ctx)

    def update(self, event: Op) -> Generator:
        if event.f in ("create-topic", "delete-topic"):
            return self._after_topic_request(event)
        used = self.used | {event.process}
        if event.type == "info":
            used -= {event.process}
        later = msgspec.structs.replace(self, work=self.work.update(event), used=used)
        return later._sends(event) if event.f == "send" else later

    def _sends(self, event: Op) -> "Cycle":
        """Keep track of sends, and of whether one may still arrive after its process has ended."""
        sending = {**self.sending}
        if event.type == "invoke":
            return msgspec.structs.replace(self, sending=sending | {event.process: event.time_ns})
        waited_s = (event.time_ns - sending.pop(event.process, event.time_ns)) / 1e9
        doubts = event.type == "info" or waited_s >= self.request_timeout_s
        return msgspec.structs.replace(self, sending=sending, doubts=self.doubts or doubts)

    def _after_topic_request(self, event: Op) -> "Cycle":
        """Continue after the creation or deletion of a topic was requested or has ended."""
        if event.type == "invoke":
            return msgspec.structs.replace(self, is_asking=True)
        now_s = event.time_ns / 1e9
        if event.type != "ok":
            return msgspec.structs.replace(self, is_asking=False, due_s=now_s + RETRY_S)
        left = tuple(topic for topic in self.left if topic != event.value[0][1])
        later = msgspec.structs.replace(self, is_asking=False, left=left, due_s=now_s)
        if event.f == "create-topic":
            later = msgspec.structs.replace(later, work=self.work.update(event))
        if left:
            return later
        if event.f == "create-topic":
            return msgspec.structs.replace(later, phase="work", due_s=now_s + self.life_s)
        topics = tuple(map(topic_incarnation.next_of, self.topics))
        return msgspec.structs.replace(
            later,
            phase="create",
            topics=topics,
            left=topics,
            work=self.born,
            used=frozenset(),
            doubts=False,
        )


def main(plan: Plan) -> Generator:
    """Run one incarnation after the other, until the time limit."""
    readers = max(1, min(plan.concurrency - 1, round(plan.concurrency / 3)))
    writing = AnyOf((Stagger(1 / plan.rate_hz, Senders(int(plan.options["batch_max"]))),))
    work = Reserve(((plan.concurrency - readers, writing), (readers, Readers())))
    topics = tuple(topic for _, topic in _topics(plan))
    cycle = Cycle(
        born=work,
        life_s=float(plan.options["life_s"]),
        request_timeout_s=int(plan.producer["request.timeout.ms"]) / 1000,
        partitions=int(plan.options["partitions"]),
        until_s=plan.time_limit_s,
        topics=topics,
        work=work,
        left=topics,
    )
    return Until(plan.time_limit_s, cycle)


def _topics(plan: Plan) -> tuple[tuple[float, str], ...]:
    return tuple((0.0, f"topic{number}") for number in range(int(plan.options["topics"])))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read the last incarnation of each partition to its end, with every thread."""
    last: dict[str, str] = {}
    for key in sorted(keys, key=lambda key: topic_incarnation.number_of(key.rpartition("-")[0])):
        life, _, partition = key.rpartition("-")
        last[f"{topic_incarnation.topic_of(life)}-{partition}"] = key
    newest = max((topic_incarnation.number_of(key.rpartition("-")[0]) for key in keys), default=0)
    read = tuple(
        key
        for key in last.values()
        if topic_incarnation.number_of(key.rpartition("-")[0]) == newest
    )
    return Until(until_s, CatchUp(left=read, keys=read))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: recreated needs at least 2, a writer and a reader"
    return options.refusal(plan.options, LEAST) or refuse_cluster(plan)


def first_partitions(plan: Plan) -> tuple[str, ...]:
    """Return the partitions of the first incarnations, whose names are those that brokers know."""
    partitions = int(plan.options["partitions"])
    return tuple(key for _, topic in _topics(plan) for key in partitions_of(topic, partitions))


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw how long topics exist."""
    return {"options": {"life_s": rng.choice((2.0, 5.0, 10.0))}}


WORKLOAD = dataclasses.replace(
    idempotent.WORKLOAD,
    name="recreated",
    options={
        "client": "librdkafka",
        "topics": 2,
        "partitions": 2,
        "replication_factor": 3,
        "replicas": [],
        "batch_max": 12,
        "life_s": 8.0,
        "final_time_limit_s": 60.0,
    },
    refuse=refuse,
    needs=needs.of_deletion,
    main=main,
    final=final,
    topics=first_partitions,
    vary=vary,
)
