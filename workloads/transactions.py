"""Transactions that send to and poll from several partitions: Jepsen's queue, with its defaults.

Every process has one transactional id (``init``) and reads partitions of its own choice by
``assign``; or with the option ``subscribe`` as a member of one group, which commits its positions
in the same transactions. A transaction has up to four sends and polls; some transactions are
aborted on purpose, some pause for longer than the coordinator waits for them. A commit or abort
without a response ends its process, unless ``doubt_ends`` is false. Most processes take over the
transactional id of their predecessor on the thread, together with what it has left open; the others
have new ids, and what they leave open ends by timeout. A transaction of polls only is
a plain poll. A plan may list the transactions, which are then used one after the other (``rows``:
``[["send", 0], ["delay", 100], ["abort"]]``, where a number stands for a partition). With
``watches_hz`` processes also request watermarks all the time.

At the end new processes read every partition from its beginning up to the high watermark, however
long that takes: a transaction that never ends blocks them, and is visible in the ``watermarks``
that they request meanwhile.
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
    Repeat,
    Stagger,
    Until,
)
from model.op import MicroOp, Op
from model.plan import Plan
from workloads import needs
from workloads.client import raw_txn, transaction
from workloads.common.options import COMMON_LEAST
from workloads.common.partitions import created
from workloads.common.reading import Watchers, read_to_ends
from workloads.common.topics import Topics, first_partitions, topics_of
from workloads.common.transactional import (
    ASKED,
    BROKER,
    CONSUMER,
    PRODUCER,
    RAW,
    asks_again,
    client,
    coordinators,
    draw_rate,
    draw_timeouts,
    identity,
    refuse_transactions,
)
from workloads.package import Workload

LEAST: Mapping[str, float] = {
    **{name: COMMON_LEAST[name] for name in ("topics", "late_topics", "partitions")},
    **{name: COMMON_LEAST[name] for name in ("replication_factor", "process_life_s")},
    "final_time_limit_s": 0.001,
    "txn_length_max": 1,
    "abort_p": 0.0,
    "delay_p": 0.0,
    "delay_max_ms": 1,
    "assign_p": 0.0,
    "new_id_p": 0.0,
    "first_sequence": 0,
    "watches_hz": 0.0,
}
"""The smallest number that each of the plan's options may be."""


GROUP = "transactions"
"""The group of all processes, if they subscribe."""


class Transactors(msgspec.Struct, frozen=True):
    """Gives each process an id and an assignment, then one transaction after another."""

    length_max: int
    abort_p: float
    delay_p: float
    delay_max_ms: int
    assign_p: float
    new_id_p: float
    subscribe: bool = False
    rows: tuple[Any, ...] = ()
    """The listed transactions, used one after the other; if empty, transactions are drawn."""
    rows_asked: int = 0
    keys: tuple[str, ...] = ()
    next_values: dict[str, int] = msgspec.field(default_factory=dict)
    ready: frozenset[int] = frozenset()
    """Processes with a producer; used for membership tests only."""
    assigned: frozenset[int] = frozenset()
    """Processes with partitions to read."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if process not in self.ready:
            value = [identity(ctx, process, self.new_id_p)]
            return Invocation(process=process, f="init", value=value), self
        if process not in self.assigned and self.subscribe:
            topics = sorted({key.rpartition("-")[0] for key in self.keys})
            how = {"instance": None, "assignor": "range", "commit": "sync"}
            value = [["subscribe", GROUP, topics, how]]
            return Invocation(process=process, f="subscribe", value=value), self
        if process not in self.assigned:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        if not self.subscribe and ctx.rng.random() < self.assign_p:
            some = ctx.rng.sample(self.keys, ctx.rng.randint(1, len(self.keys)))
            return Invocation(process=process, f="assign", value=sorted(some)), self
        return self._written(process) if self.rows else self._transaction(ctx, process)

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(
                self,
                keys=(*self.keys, *new),
                next_values=self.next_values | dict.fromkeys(new, 0),
                assigned=frozenset(),  # every process must read the new ones, too
            )
        process = frozenset({event.process})
        match event.f, event.type:
            case "init", "ok":
                return msgspec.structs.replace(self, ready=self.ready | process)
            case (("assign" | "subscribe"), "ok"):
                return msgspec.structs.replace(self, assigned=self.assigned | process)
            case _, "info":
                left = self.ready - process, self.assigned - process
                return msgspec.structs.replace(self, ready=left[0], assigned=left[1])
            case _:
                return self

    def _written(self, process: int) -> Answer:
        next_values = dict(self.next_values)
        row: list[MicroOp] = []
        for name, *argument in self.rows[self.rows_asked % len(self.rows)]:
            match name:
                case "send":
                    key = self.keys[argument[0] % len(self.keys)]
                    row.append([name, key, next_values[key]])
                    next_values[key] += 1
                case "delay":
                    row.append([name, None, *argument])
                case _:
                    row.append([name])
        later = msgspec.structs.replace(
            self, next_values=next_values, rows_asked=self.rows_asked + 1
        )
        return Invocation(process=process, f="txn", value=row), later

    def _transaction(self, ctx: Context, process: int) -> Answer:
        rng = ctx.rng
        next_values = dict(self.next_values)
        row: list[MicroOp] = []
        for _ in range(rng.randint(1, self.length_max)):
            if rng.random() < 0.5:
                row.append(["poll"])
                continue
            key = rng.choice(self.keys)
            row.append(["send", key, next_values[key]])
            next_values[key] += 1
        polls = [micro_op for micro_op in row if micro_op == ["poll"]]
        if polls and self.subscribe:
            row.append(["commit", GROUP, None])
        elif len(polls) == len(row):
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        if rng.random() < self.delay_p:
            delay = ["delay", None, rng.randint(1, self.delay_max_ms)]
            row.insert(rng.randint(0, len(row)), delay)
        if rng.random() < self.abort_p:
            row.append(["abort"])
        later = msgspec.structs.replace(self, next_values=next_values)
        return Invocation(process=process, f="txn", value=row), later


def main(plan: Plan) -> Generator:
    """Run transactions until the time limit."""
    life_s = float(plan.options["process_life_s"])
    crash_every_s = life_s / plan.concurrency
    watches_hz = float(plan.options["watches_hz"])
    asked = plan.options
    transactors = Transactors(
        length_max=int(asked["txn_length_max"]),
        abort_p=float(asked["abort_p"]),
        delay_p=float(asked["delay_p"]),
        delay_max_ms=int(asked["delay_max_ms"]),
        assign_p=float(asked["assign_p"]),
        new_id_p=float(asked["new_id_p"]),
        subscribe=asked["subscribe"] is True,
        rows=tuple(asked["rows"]),
    )
    work = AnyOf(
        (
            Topics(topics_of(plan), int(plan.options["partitions"])),
            Stagger(crash_every_s, Repeat("crash"), next_s=crash_every_s),
            Stagger(1 / plan.rate_hz, transactors),
            *([Stagger(1 / watches_hz, Watchers())] if watches_hz else []),
        )
    )
    return Until(plan.time_limit_s, work)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    subscribe = plan.options["subscribe"]
    if not isinstance(subscribe, bool):
        return f"options: subscribe={subscribe}: must be true or false"
    if not isinstance(plan.options["doubt_ends"], bool):
        return f"options: doubt_ends={plan.options['doubt_ends']}: must be true or false"
    if subscribe and plan.options["client"] != "librdkafka":
        return (
            f"options: subscribe=true: {plan.options['client']} cannot commit offsets as a group"
            " member; use client=librdkafka"
        )
    return (
        options.refusal(plan.options, LEAST)
        or refuse_sequence(plan.options)
        or refuse_rows(plan.options["rows"])
        or refuse_transactions(plan)
    )


def refuse_sequence(asked: Mapping[str, Any]) -> str | None:
    """Return why no producer can begin with this sequence number, or ``None``."""
    first = asked["first_sequence"]
    if first and (asked["client"] != RAW or first >= raw_txn.SEQUENCES):
        return f"options: first_sequence={first}: must be below 2^31, and 0 unless client={RAW}"
    return None


def refuse_rows(rows: Any) -> str | None:
    """Return why these are not lists of micro-operations, or ``None``."""
    for row in rows if isinstance(rows, list) else [rows]:
        steps = [tuple(map(type, step)) for step in row] if isinstance(row, list) else []
        names = [step[0] for step in row] if steps and all(steps) else []
        shapes = set(zip(names, steps, strict=True))
        if not names or not shapes <= _SHAPES or "abort" in names[:-1]:
            return (
                f"options: rows: {row}: must be a list of send KEY, delay MILLISECONDS and poll,"
                " with abort only at the end"
            )
    return None


_SHAPES = {
    ("send", (str, int)),
    ("delay", (str, int)),
    ("poll", (str,)),
    ("abort", (str,)),
}
"""The micro-operations of a listed transaction, as types."""


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than the longest transaction: each of its steps has a time limit."""
    rows = plan.options["rows"]
    length = max(int(plan.options["txn_length_max"]), *map(len, rows), 0)
    delays_ms = [sum(step[1] for step in row if step[0] == "delay") for row in rows]
    sends_s = int(plan.producer["delivery.timeout.ms"]) / 1000 * length
    delay_s = max(int(plan.options["delay_max_ms"]), *delays_ms, 0) / 1000
    end_s = transaction.end_timeout_s(plan.producer, asks_again=asks_again(plan))
    return float(sends_s + delay_s + 4 * end_s + 15.0)


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw timeouts, delays, and which client gives up early.

    Also drawn are sequence numbers that are about to wrap, whether watermarks are requested, and
    when silent producers are forgotten.
    """
    drawn = draw_timeouts(rng)
    client = rng.choice(("aiokafka", "aiokafka", "aiokafka", RAW))
    first = rng.choice((0, raw_txn.SEQUENCES - rng.randint(1, 50)))
    drawn["options"] |= {"client": client, "first_sequence": first if client == RAW else 0}
    drawn["plan"] = draw_rate(rng)
    drawn["options"] |= {"watches_hz": rng.choice((0.0, 4.0))}
    drawn["broker"] = _expiration(rng)
    return drawn


def _expiration(rng: random.Random) -> dict[str, str]:
    """Draw when brokers forget silent producers: sometimes before an open transaction times out.

    This workload only sends within transactions: between two of them, no retry needs what is
    forgotten. A producer without transactions may retry a batch that its broker has forgotten.
    """
    expiration_ms = rng.choice((None, None, 500, 1000))
    return {} if expiration_ms is None else {"producer.id.expiration.ms": str(expiration_ms)}


WORKLOAD = Workload(
    name="transactions",
    rate_hz=60.0,
    options={
        "client": "librdkafka",
        "topics": 2,
        "late_topics": 2,
        "partitions": 2,
        "replication_factor": 3,
        "replicas": [],
        "subscribe": False,
        "doubt_ends": True,
        "process_life_s": 15.0,
        "txn_length_max": 4,
        "abort_p": 0.1,
        "delay_p": 0.1,
        "delay_max_ms": 1500,
        "assign_p": 1 / 64,
        "new_id_p": 0.25,
        "first_sequence": 0,
        "watches_hz": 0.0,
        "rows": [],
        "final_time_limit_s": 60.0,
    },
    broker=BROKER,
    producer=PRODUCER,
    consumer=CONSUMER,
    refuse=refuse,
    needs=needs.of_transactions,
    main=main,
    final=read_to_ends,
    client=client,
    op_timeout_s=op_timeout_s,
    topics=first_partitions,
    coordinators=coordinators,
    asked=lambda plan: ASKED,
    trigger_ops=("txn",),
    vary=vary,
)
