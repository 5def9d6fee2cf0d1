"""Every process sends and polls, under every guarantee that the configuration gives.

Those are: acks 0, 1 or all, with or without sequence numbers, partitions by ``assign`` or by
``subscribe``. The contract decides what may be lost, duplicated or reordered
(``checkers.expectations``); this workload runs it under every setting. A process sends to several
partitions and follows several of its own choice, which it sometimes changes; or it follows those
that its group assigns to it, and the library commits its positions.
"""

import dataclasses
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
from workloads import idempotent, needs
from workloads.common import group_members
from workloads.common.deletion import DELETES_HZ, DELETIONS, deleting
from workloads.common.options import COMMON_LEAST, refuse_cluster
from workloads.common.partitions import created
from workloads.common.reading import CatchUp, Watchers
from workloads.common.topics import Topics, topics_of

GROUP = "send-poll"

LEAST: Mapping[str, float] = {**COMMON_LEAST, **DELETIONS, "followed_max": 1}
"""The smallest number that each of the plan's options may be."""

WATCHES_HZ = 1.0
"""How often per second watermarks are requested."""
REASSIGN = 1 / 64
"""The share of polls that follow a new choice of partitions (Jepsen's share).

Members of a group do not choose: with each choice the whole group would stop reading.
"""


class Senders(msgspec.Struct, frozen=True):
    """Sends the next numbers of several partitions at a time, with any free process."""

    batch_max: int
    keys: tuple[str, ...] = ()
    next_values: dict[str, int] = msgspec.field(default_factory=dict)

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        next_values = dict(self.next_values)
        value = []
        for _ in range(ctx.rng.randint(1, self.batch_max)):
            key = ctx.rng.choice(self.keys)
            value.append(["send", key, next_values[key]])
            next_values[key] += 1
        later = msgspec.structs.replace(self, next_values=next_values)
        return Invocation(process=ctx.rng.choice(ctx.free), f="send", value=value), later

    def update(self, event: Op) -> Generator:
        new = created(event)
        if not new:
            return self
        next_values = self.next_values | dict.fromkeys(new, 0)
        return msgspec.structs.replace(self, keys=(*self.keys, *new), next_values=next_values)


class Followers(msgspec.Struct, frozen=True):
    """Has each process assign some partitions, or subscribe to every topic, and poll."""

    followed_max: int
    subscribe: bool = False
    keys: tuple[str, ...] = ()
    ready: frozenset[int] = frozenset()
    """Live processes that follow partitions; used for membership tests only."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        again = not self.subscribe and ctx.rng.random() < REASSIGN
        if process in self.ready and not again:
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        return self._follow(process, ctx.rng), self

    def _follow(self, process: int, rng: random.Random) -> Invocation:
        if self.subscribe:
            topics = sorted({key.rpartition("-")[0] for key in self.keys})
            how = {"instance": None, "assignor": "range", "commit": "auto"}
            value: MicroOp = ["subscribe", GROUP, topics, how]
            return Invocation(process=process, f="subscribe", value=[value])
        count = rng.randint(1, min(self.followed_max, len(self.keys)))
        return Invocation(process=process, f="assign", value=rng.sample(self.keys, count))

    def update(self, event: Op) -> Generator:
        if new := created(event):
            ready = frozenset() if self.subscribe else self.ready  # there is another topic
            return msgspec.structs.replace(self, keys=(*self.keys, *new), ready=ready)
        process = frozenset({event.process})
        if event.f in ("assign", "subscribe") and event.type == "ok":
            return msgspec.structs.replace(self, ready=self.ready | process)
        if event.type == "info":
            return msgspec.structs.replace(self, ready=self.ready - process)
        return self


def main(plan: Plan) -> Generator:
    """Run all kinds of operations in all processes until the time limit."""
    life_s = float(plan.options["process_life_s"])
    gap_s = life_s / plan.concurrency
    if plan.options["subscribe"]:  # a group that always waits for a crashed member never reads
        gap_s = max(gap_s, 2 * int(plan.consumer["session.timeout.ms"]) / 1000)
    work = AnyOf(
        (
            Topics(topics_of(plan), int(plan.options["partitions"])),
            Stagger(gap_s, Repeat("crash"), next_s=gap_s),
            Stagger(1 / WATCHES_HZ, Watchers()),
            *deleting(plan),
            Stagger(1 / plan.rate_hz, Senders(int(plan.options["batch_max"]))),
            Followers(int(plan.options["followed_max"]), plan.options["subscribe"]),
        )
    )
    return Until(plan.time_limit_s, work)


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read these partitions by ``assign``, with every thread, until each was read to its end."""
    return Until(until_s, CatchUp(left=keys, keys=keys))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if not isinstance(plan.options["subscribe"], bool):
        return f"options: subscribe={plan.options['subscribe']}: must be true or false"
    if plan.options["subscribe"] and plan.options["deletes_hz"]:
        return (
            "options: deletes_hz: must be 0 with subscribe=true, because a group could begin at"
            " records that are deleted"
        )
    refuse_for = group_members.refuse if plan.options["subscribe"] else refuse_cluster
    return options.refusal(plan.options, LEAST) or refuse_for(plan)


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinator of its group, if it has one."""
    return (f"group-coordinator:{GROUP}",) if plan.options["subscribe"] else ()


def asked(plan: Plan) -> tuple[str, ...]:
    """Return the APIs that its clients call again and again, with those of members in a group."""
    return ("Produce", "Fetch", *(group_members.ASKED if plan.options["subscribe"] else ()))


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw acks, idempotence, the kind of assignment, and how much is deleted."""
    acks, idempotence = rng.choice(
        (("all", True), ("all", False), ("all", False), ("1", False), ("1", False), ("0", False))
    )
    followed_max, subscribe = rng.choice((2, 4, 8)), rng.random() < 0.5
    deletes_hz = rng.choice(DELETES_HZ)
    return {
        "producer": {"acks": acks, "enable.idempotence": str(idempotence).lower()},
        "options": {
            "followed_max": followed_max,
            "subscribe": subscribe,
            "deletes_hz": 0.0 if subscribe else deletes_hz,
        },
    }


WORKLOAD = dataclasses.replace(
    idempotent.WORKLOAD,
    name="send_poll",
    options={**idempotent.WORKLOAD.options, "followed_max": 6, "subscribe": False},
    broker=group_members.BROKER,
    consumer=group_members.CONSUMER,
    refuse=refuse,
    needs=needs.of_members,
    main=main,
    final=final,
    client=group_members.client,
    coordinators=coordinators,
    asked=asked,
    vary=vary,
)
