"""Two processes, one transactional id: whoever takes over fences the other, wherever he stands.

Threads work in pairs. The two of a pair have one transactional id, for which each of them asks
(``init``) now and then: from the answer on, nothing that the other has under way or begins may come
about. What makes zombies of them are pauses in the middle of transactions, before, between and
behind their sends, for shorter and longer than the other takes to come: who wakes up goes on as if
nothing had been, with partitions that it has not written yet, with its commit or its abort. A
process that was refused ends, and after a while another one of its thread takes over in turn.

Nobody is hurried: coordinators wait longer than anybody pauses, so that it is the takeover which
ends a transaction. Readers by ``assign`` follow; at the end every key is read up to its high
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
from workloads import idempotent, transactions
from workloads.client import transaction
from workloads.idempotent import Readers, Topics, created, topics_of
from workloads.package import Workload

LEAST: Mapping[str, float] = {
    **{name: idempotent.LEAST[name] for name in ("topics", "late_topics", "partitions")},
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
    """Asks for the id of a pair, in the name of a process that has none."""

    ready: frozenset[int] = frozenset()
    """Processes that have one, asked about by membership only."""

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
    """Transactions of the processes that have an id, or think so."""

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
    """How many of the threads are of a pair: as many as leave one to read."""
    return (plan.concurrency - 1) // 2 * 2


def main(plan: Plan) -> Generator:
    """Pairs and readers until the time limit."""
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
    """Why this plan cannot be run."""
    if plan.concurrency < 3:
        return "--concurrency: fencing needs at least 3, a pair and a reader"
    return options.refusal(plan.options, LEAST) or transactions.refuse_transactions(plan)


def op_timeout_s(plan: Plan) -> float:
    """Longer than the longest transaction: each of its steps is bounded by its client."""
    length = int(plan.options["txn_length_max"])
    sends_s = length * int(plan.producer["delivery.timeout.ms"]) / 1000
    delays_s = (length + 1) * int(plan.options["delay_max_ms"]) / 1000
    return sends_s + delays_s + 3 * transaction.end_timeout_s(plan.producer) + 15.0


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Of the pairs' transactional ids."""
    return tuple(f"transaction-coordinator:pair-{pair}" for pair in range(_rivals(plan) // 2))


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """How fast takeovers follow each other, and how long anybody pauses."""
    options = {
        "takeover_s": rng.choice((0.3, 1.0, 2.0, 4.0)),
        "delay_p": rng.choice((0.1, 0.3, 0.6)),
        "delay_max_ms": rng.choice((50, 500, 2000)),
        "abort_p": rng.choice((0.05, 0.1, 0.3)),
    }
    return {"producer": dict(TIMEOUTS), "options": options, "plan": transactions.often(rng)}


TIMEOUTS: Mapping[str, str] = {
    "transaction.timeout.ms": "20000",
    "delivery.timeout.ms": "4000",
    "request.timeout.ms": "2000",
    "socket.timeout.ms": "2000",
}
"""Of a producer that is not hurried."""

WORKLOAD = Workload(
    name="fencing",
    idea="two processes take one transactional id from each other, in the middle of transactions",
    checkers=idempotent.WORKLOAD.checkers,
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
    broker=transactions.BROKER,
    producer={**idempotent.WORKLOAD.producer, **TIMEOUTS},
    consumer=transactions.WORKLOAD.consumer,
    refuse=refuse,
    main=main,
    final=transactions.final,
    client=transactions.client,
    op_timeout_s=op_timeout_s,
    topics=idempotent.first_keys,
    coordinators=coordinators,
    asked=transactions.WORKLOAD.asked,
    moments=("txn", "init"),
    vary=vary,
)
