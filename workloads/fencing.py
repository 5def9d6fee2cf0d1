"""Two processes share one transactional id: the later one fences the other in any state.

Threads work in pairs. Both processes of a pair request the pair's transactional id (``init``): from
the response on, nothing that the other has in progress or begins may take effect. Pauses in the
middle of transactions make zombies of them: before, between and after their sends, for shorter and
for longer than the other needs to take over. A process continues after its pause as if nothing had
happened, with partitions that it has not written yet, with its commit or its abort. A process that
was rejected ends, and after a while the next process of its thread takes over again. Transactions
do not time out: coordinators wait for longer than any pause, so that only the takeover ends a
transaction. Readers by ``assign`` follow; at the end every partition is read up to its high
watermark.
"""

import random
from collections.abc import Mapping
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
    Reserve,
    Stagger,
    Until,
)
from model.op import MicroOp, Op
from model.plan import Plan
from workloads import needs
from workloads.client import transaction
from workloads.common import settings, transactional
from workloads.common.options import COMMON_LEAST
from workloads.common.partitions import created
from workloads.common.reading import Readers, read_to_ends
from workloads.common.topics import Topics, first_partitions, topics_of
from workloads.package import Workload

LEAST: Mapping[str, float] = {
    **{name: COMMON_LEAST[name] for name in ("topics", "late_topics", "partitions")},
    "replication_factor": 1,
    "final_time_limit_s": 0.001,
    "txn_length_max": 1,
    "takeover_s": 0.001,
    "abort_p": 0.0,
    "delay_p": 0.0,
    "delay_max_ms": 1,
}
"""The smallest number that each of the plan's options may be."""


class Ids(msgspec.Struct, frozen=True):
    """Requests a pair's transactional id for a process that has none."""

    ready: frozenset[int] = frozenset()
    """Processes that have one; used for membership tests only."""

    def op(self, ctx: Context) -> Answer:
        waiting = [process for process in ctx.free if process not in self.ready]
        if not waiting:
            return PENDING, self
        process = ctx.rng.choice(waiting)
        name = f"pair-{process % ctx.concurrency // 2}"
        return Invocation(process=process, f="init", value=[["init", name]]), self

    def update(self, event: Op) -> Generator:
        if event.f == "init" and event.type == "ok":
            return Ids(self.ready | {event.process})
        return self


class Rivals(msgspec.Struct, frozen=True):
    """Transactions of the processes that have a transactional id, or take themselves to have it."""

    length_max: int
    abort_p: float
    delay_p: float
    delay_max_ms: int
    keys: tuple[str, ...] = ()
    next_values: dict[str, int] = msgspec.field(default_factory=dict)
    ready: frozenset[int] = frozenset()

    def op(self, ctx: Context) -> Answer:
        able = [process for process in ctx.free if process in self.ready]
        if not self.keys or not able:
            return PENDING, self
        next_values = dict(self.next_values)
        row: list[MicroOp] = []
        for _ in range(ctx.rng.randint(1, self.length_max)):
            if ctx.rng.random() < self.delay_p:
                row.append(self._delay(ctx.rng))
            key = ctx.rng.choice(self.keys)
            row.append(["send", key, next_values[key]])
            next_values[key] += 1
        if ctx.rng.random() < self.delay_p:
            row.append(self._delay(ctx.rng))
        if ctx.rng.random() < self.abort_p:
            row.append(["abort"])
        later = msgspec.structs.replace(self, next_values=next_values)
        return Invocation(process=ctx.rng.choice(able), f="txn", value=row), later

    def update(self, event: Op) -> Generator:
        if new := created(event):
            next_values = self.next_values | dict.fromkeys(new, 0)
            return msgspec.structs.replace(self, keys=(*self.keys, *new), next_values=next_values)
        if event.f == "init" and event.type == "ok":
            return msgspec.structs.replace(self, ready=self.ready | {event.process})
        return self

    def _delay(self, rng: random.Random) -> MicroOp:
        return ["delay", None, rng.randint(1, self.delay_max_ms)]


def _rivals(plan: Plan) -> int:
    """Return how many of the threads form pairs: as many as leave one thread to read."""
    return (plan.concurrency - 1) // 2 * 2


def main(plan: Plan) -> Generator:
    """Run pairs and readers until the time limit."""
    rivals = _rivals(plan)
    asked = plan.options
    work = AnyOf(
        (
            Topics(topics_of(plan), int(asked["partitions"])),
            Stagger(2 * float(asked["takeover_s"]) / rivals, Ids()),
            Stagger(
                1 / plan.rate_hz,
                Rivals(
                    length_max=int(asked["txn_length_max"]),
                    abort_p=float(asked["abort_p"]),
                    delay_p=float(asked["delay_p"]),
                    delay_max_ms=int(asked["delay_max_ms"]),
                ),
            ),
        )
    )
    reading = (plan.concurrency - rivals, Readers())
    return Until(plan.time_limit_s, Reserve(((rivals, work), reading)))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 3:
        return "--concurrency: fencing needs at least 3, a pair and a reader"
    return options.refusal(plan.options, LEAST) or transactional.refuse_transactions(plan)


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than the longest transaction: each of its steps has a time limit."""
    length = int(plan.options["txn_length_max"])
    sends_s = length * int(plan.producer["delivery.timeout.ms"]) / 1000
    delays_s = (length + 1) * int(plan.options["delay_max_ms"]) / 1000
    return sends_s + delays_s + 3 * transaction.end_timeout_s(plan.producer) + 15.0


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinators of the pairs' transactional ids."""
    return tuple(f"transaction-coordinator:pair-{pair}" for pair in range(_rivals(plan) // 2))


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw how fast takeovers follow one another, and how long processes pause."""
    options = {
        "takeover_s": rng.choice((0.3, 1.0, 2.0, 4.0)),
        "delay_p": rng.choice((0.1, 0.3, 0.6)),
        "delay_max_ms": rng.choice((50, 500, 2000)),
        "abort_p": rng.choice((0.05, 0.1, 0.3)),
    }
    return {"producer": dict(TIMEOUTS), "options": options, "plan": transactional.draw_rate(rng)}


TIMEOUTS: Mapping[str, str] = {
    "transaction.timeout.ms": "20000",
    "delivery.timeout.ms": "4000",
    "request.timeout.ms": "2000",
    "socket.timeout.ms": "2000",
}
"""The timeouts of a producer whose transactions must not time out."""

WORKLOAD = Workload(
    name="fencing",
    rate_hz=60.0,
    options={
        "client": "librdkafka",
        "topics": 1,
        "late_topics": 1,
        "partitions": 3,
        "replication_factor": 3,
        "replicas": [],
        "txn_length_max": 4,
        "takeover_s": 2.0,
        "abort_p": 0.1,
        "delay_p": 0.3,
        "delay_max_ms": 2000,
        "final_time_limit_s": 60.0,
    },
    broker=transactional.BROKER,
    producer={**settings.PRODUCER, **TIMEOUTS},
    consumer=transactional.CONSUMER,
    refuse=refuse,
    needs=needs.of_transactions,
    main=main,
    final=read_to_ends,
    client=transactional.client,
    op_timeout_s=op_timeout_s,
    topics=first_partitions,
    coordinators=coordinators,
    asked=lambda plan: transactional.ASKED,
    trigger_ops=("txn", "init"),
    vary=vary,
)
