"""Consume, transform, produce, exactly once, by several members of one group that come and go.

Writers send unique numbers to the partitions of the topic ``input``. Members of the group ``eos``
poll them, send an output for each, and commit the positions after what they have polled, all in one
transaction; some abort, some pause for longer than the coordinator waits, some leave, some crash.

**Inputs and outputs.** A number is written once to all of ``input``, not once per partition. From
value ``v`` of a partition ``input-…`` an operation makes ``model.transform.output(v, index of the
operation)``, in the partition ``output-(v modulo the number of partitions)``: every attempt makes
another value, and ``model.transform.input_of`` returns ``v`` for all of them. So for every number
in ``input`` the committed ``output`` must hold exactly one value, and no others.

An operation is a ``txn`` of ``["poll"], ["transform", "output", partitions], ["commit", group,
null]``. Its completion has rebalances before the poll, a ``send`` for each polled record instead of
``transform``, and the committed positions; if nothing was polled, it has only the rebalances and
the poll.

librdkafka's members commit under their own member ids (KIP-447). aiokafka cannot do so: there each
partition of ``input`` has a transactional id, which the member that is assigned the partition takes
over (``workloads.client.aio_transform``).

At the end new members continue until the whole input is committed as read; then readers read every
partition of both topics up to its high watermark.
"""

import random
from collections.abc import Mapping
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
    Wait,
)
from model.op import MicroOp, Op
from model.plan import Plan
from model.roles import Client
from workloads import needs
from workloads.client import aio_transform, confluent_transform, transaction
from workloads.client.common import Settings
from workloads.common import transactional
from workloads.common.clients import Make
from workloads.common.partitions import created, partitions_of
from workloads.common.reading import CatchUp
from workloads.common.topics import Topics, topic_settings
from workloads.package import Workload

GROUP = "eos"
INPUT, OUTPUT = "input", "output"

LEAST: Mapping[str, float] = {
    "partitions": 1,
    "replication_factor": 1,
    "process_life_s": 0.001,
    "final_time_limit_s": 0.001,
    "batch_max": 1,
    "abort_p": 0.0,
    "delay_p": 0.0,
    "delay_max_ms": 1,
    "leave_p": 0.0,
    "new_id_p": 0.0,
}
"""The smallest number that each of the plan's options may be."""

HURRY_S = 0.02
"""The time between two transactions in the final phase."""
ASK_EVERY_S = 0.5
"""How often the final phase requests the committed offsets of the input."""
POLL_MS_MIN = 2500
"""The shortest ``max.poll.interval.ms`` that is drawn.

A transaction over slow links takes up to 2 s. If every one took longer than the interval, each
would end with a rebalance, and the input would not be read to its end in time.
"""


class Inputs(msgspec.Struct, frozen=True):
    """Sends the next numbers to one partition of the input at a time."""

    batch_max: int
    keys: tuple[str, ...] = ()
    next_value: int = 0

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        key, count = ctx.rng.choice(self.keys), ctx.rng.randint(1, self.batch_max)
        value = [["send", key, self.next_value + number] for number in range(count)]
        later = msgspec.structs.replace(self, next_value=self.next_value + count)
        return Invocation(process=ctx.rng.choice(ctx.free), f="send", value=value), later

    def update(self, event: Op) -> Generator:
        new = tuple(key for key in created(event) if key.startswith(f"{INPUT}-"))
        return msgspec.structs.replace(self, keys=(*self.keys, *new)) if new else self


class Transformers(msgspec.Struct, frozen=True):
    """Members of the group: one transaction after another, until they leave."""

    partitions: int
    abort_p: float
    delay_p: float
    delay_max_ms: int
    leave_p: float
    new_id_p: float
    has_id: bool
    """Do transactional ids belong to processes, rather than to partitions?"""
    topics: frozenset[str] = frozenset()
    """The topics that exist."""
    ready: frozenset[int] = frozenset()
    """Processes with a producer; used for membership tests only."""
    members: frozenset[int] = frozenset()

    def op(self, ctx: Context) -> Answer:
        if not ctx.free or self.topics != {INPUT, OUTPUT}:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if self.has_id and process not in self.ready:
            value = [transactional.identity(ctx, process, self.new_id_p)]
            return Invocation(process=process, f="init", value=value), self
        if process not in self.members:
            how = {"instance": None, "assignor": "range", "commit": "sync"}
            value = [["subscribe", GROUP, [INPUT], how]]
            return Invocation(process=process, f="subscribe", value=value), self
        if ctx.rng.random() < self.leave_p:
            return Invocation(process=process, f="leave", value=[["leave", GROUP]]), self
        return Invocation(process=process, f="txn", value=self._row(ctx.rng)), self

    def update(self, event: Op) -> "Transformers":
        process = frozenset({event.process})
        match event.f, event.type:
            case "create-topic", "ok":
                return msgspec.structs.replace(self, topics=self.topics | {event.value[0][1]})
            case "init", "ok":
                return msgspec.structs.replace(self, ready=self.ready | process)
            case "subscribe", "ok":
                return msgspec.structs.replace(self, members=self.members | process)
            case _, "info":
                left = self.ready - process, self.members - process
                return msgspec.structs.replace(self, ready=left[0], members=left[1])
            case _:
                return self

    def _row(self, rng: random.Random) -> list[MicroOp]:
        row: list[MicroOp] = [["poll"], ["transform", OUTPUT, self.partitions]]
        row.append(["commit", GROUP, None])
        if rng.random() < self.delay_p:
            row.insert(rng.choice((2, 3)), ["delay", None, rng.randint(1, self.delay_max_ms)])
        if rng.random() < self.abort_p:
            row.append(["abort"])
        return row


class Progress(msgspec.Struct, frozen=True):
    """Requests the ends of the input, then its committed offsets until all is read."""

    keys: tuple[str, ...]
    ends: dict[str, int] = msgspec.field(default_factory=dict)
    done: frozenset[str] = frozenset()
    next_s: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.done.issuperset(self.keys)

    def op(self, ctx: Context) -> Answer:
        if self.is_over:
            return None, self
        if not ctx.free:
            return PENDING, self
        if ctx.now_s < self.next_s:
            return Wait(self.next_s), self
        process = ctx.rng.choice(ctx.free)
        unknown = [key for key in self.keys if key not in self.ends]
        if unknown:
            value: list[MicroOp] = [["watermarks", ctx.rng.choice(unknown)]]
            return Invocation(process=process, f="watermarks", value=value), self
        value = [["committed", GROUP, dict.fromkeys(self.keys)]]
        later = msgspec.structs.replace(self, next_s=ctx.now_s + ASK_EVERY_S)
        return Invocation(process=process, f="committed", value=value), later

    def update(self, event: Op) -> "Progress":
        match event.f, event.type:
            case "watermarks", "ok":
                ((_, key, places),) = event.value
                return msgspec.structs.replace(self, ends=self.ends | {key: places["high"]})
            case "committed", "ok":
                ((_, _, offsets),) = event.value
                done = {key for key in self.keys if (offsets[key] or 0) >= self.ends[key]}
                return msgspec.structs.replace(self, done=frozenset(done))
            case _:
                return self


class Ending(msgspec.Struct, frozen=True):
    """Members work until the input is read; then every partition is read."""

    asking: Progress
    working: Generator
    reading: Generator
    readers: int
    members: int

    def op(self, ctx: Context) -> Answer:
        if self.asking.is_over:
            answer, reading = self.reading.op(ctx.only(0, self.readers))
            return answer, msgspec.structs.replace(self, reading=reading)
        parts = Reserve(((self.readers, self.asking), (self.members, self.working)))
        answer, later = parts.op(ctx)
        assert isinstance(later, Reserve), "the parts of Reserve have not ended"
        (_, asking), (_, working) = later.parts
        assert isinstance(asking, Progress), "the first part is the one that asks for progress"
        return answer, msgspec.structs.replace(self, asking=asking, working=working)

    def update(self, event: Op) -> Generator:
        return msgspec.structs.replace(
            self,
            asking=self.asking.update(event),
            working=self.working.update(event),
            reading=self.reading.update(event),
        )


def _writers(plan: Plan) -> int:
    """Return how many of the threads write: about a quarter, at least one, and never all."""
    return max(1, min(plan.concurrency - 1, round(plan.concurrency / 4)))


def _transformers(plan: Plan, **calm: Any) -> Transformers:
    asked: dict[str, Any] = {**plan.options, **calm}
    return Transformers(
        partitions=int(asked["partitions"]),
        abort_p=float(asked["abort_p"]),
        delay_p=float(asked["delay_p"]),
        delay_max_ms=int(asked["delay_max_ms"]),
        leave_p=float(asked["leave_p"]),
        new_id_p=float(asked["new_id_p"]),
        has_id=asked["client"] == "librdkafka",
    )


def main(plan: Plan) -> Generator:
    """Run writers and members until the time limit."""
    writers = _writers(plan)
    members = plan.concurrency - writers
    life_s = float(plan.options["process_life_s"])
    partitions = int(plan.options["partitions"])
    writing = AnyOf(
        (
            Topics(((0.0, INPUT), (0.0, OUTPUT)), partitions),
            Stagger(1 / plan.rate_hz, Inputs(int(plan.options["batch_max"]))),
        )
    )
    working = AnyOf(
        (
            Stagger(life_s / members, Repeat("crash"), next_s=life_s / members),
            Stagger(1 / plan.rate_hz, _transformers(plan)),
        )
    )
    return Until(plan.time_limit_s, Reserve(((writers, writing), (members, working))))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Process the rest of the input, and read both topics to their ends."""
    readers = _writers(plan)
    working = _transformers(plan, abort_p=0.0, delay_p=0.0, leave_p=0.0)
    keys = tuple(dict.fromkeys((*keys, *topics(plan))))
    ending = Ending(
        asking=Progress(tuple(key for key in keys if key.startswith(f"{INPUT}-"))),
        working=Stagger(
            HURRY_S, msgspec.structs.replace(working, topics=frozenset({INPUT, OUTPUT}))
        ),
        reading=CatchUp(left=keys, keys=keys, watches=True),
        readers=readers,
        members=plan.concurrency - readers,
    )
    return Until(until_s, ending)


CLIENTS: Mapping[str, Make] = {
    "librdkafka": confluent_transform.TransformingConfluentClient,
    "aiokafka": aio_transform.TransformingAioClient,
}
"""The clients, by the value of the option ``client``."""


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make = CLIENTS[plan.options["client"]]
    topic = topic_settings(plan)
    return make(Settings.of(plan, connection, process, topic))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: exactly-once needs at least 2, a writer and a member"
    if plan.consumer.get("isolation.level") != "read_committed":
        return "--set consumer.isolation.level: exactly-once needs read_committed"
    return options.refusal(plan.options, LEAST) or transactional.refuse_transactions(plan)


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than the longest transaction.

    It may have to take over every partition first.
    """
    partitions = int(plan.options["partitions"])
    taking_over_s = partitions * (transaction.INIT_TIMEOUT_S + 5.0)
    sends_s = int(plan.producer["delivery.timeout.ms"]) / 1000
    delay_s = int(plan.options["delay_max_ms"]) / 1000
    return taking_over_s + sends_s + delay_s + 4 * transaction.end_timeout_s(plan.producer) + 15.0


def topics(plan: Plan) -> tuple[str, ...]:
    """Return the partitions that exist soon after the start."""
    partitions = int(plan.options["partitions"])
    return partitions_of(INPUT, partitions) + partitions_of(OUTPUT, partitions)


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinators of the group, and of inherited transactional ids.

    Threads or partitions inherit these ids.
    """
    names = [f"{GROUP}-{key}" for key in partitions_of(INPUT, int(plan.options["partitions"]))]
    if plan.options["client"] == "librdkafka":
        names = [f"thread-{number}" for number in range(_writers(plan), plan.concurrency)]
    of_ids = tuple(f"transaction-coordinator:{name}" for name in names)
    return (f"group-coordinator:{GROUP}", *of_ids)


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw what ``transactions`` draws, session timeouts, and longer lives of members.

    With short lives the group would wait all the time for members that have crashed.
    """
    drawn = transactional.draw_timeouts(rng)
    session_ms = rng.choice((600, 1000, 2000))
    drawn["consumer"] = {
        "session.timeout.ms": str(session_ms),
        "max.poll.interval.ms": str(rng.choice((max(session_ms, POLL_MS_MIN), 4000))),
    }
    drawn["options"] |= {
        "leave_p": rng.choice((0.0, 1 / 64, 1 / 16)),
        "process_life_s": rng.choice((10.0, 20.0, 40.0)),
    }
    return drawn


WORKLOAD = Workload(
    name="exactly-once",
    rate_hz=60.0,
    options={
        "client": "librdkafka",
        "subscribe": True,
        "partitions": 3,
        "replication_factor": 3,
        "replicas": [],
        "process_life_s": 20.0,
        "batch_max": 6,
        "abort_p": 0.1,
        "delay_p": 0.1,
        "delay_max_ms": 1500,
        "leave_p": 1 / 64,
        "new_id_p": 0.25,
        "final_time_limit_s": 90.0,
    },
    broker=transactional.BROKER,
    producer=transactional.PRODUCER,
    consumer=transactional.CONSUMER,
    refuse=refuse,
    needs=needs.of_transactions,
    main=main,
    final=final,
    client=client,
    op_timeout_s=op_timeout_s,
    topics=topics,
    coordinators=coordinators,
    asked=lambda plan: (*transactional.ASKED, "AddOffsetsToTxn", "TxnOffsetCommit", "Heartbeat"),
    trigger_ops=("txn", "subscribe", "leave"),
    vary=vary,
)
