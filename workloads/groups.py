"""Members of consumer groups come and go, read what others write, and commit their positions.

A member subscribes, polls, and ends with a ``leave`` or a ``crash``. A static member has the
``group.instance.id`` of its thread, which the next process of the thread uses as well. Some members
freeze for a while, longer than their session may last, and some of these in the middle of a commit.
Each group has its own assignor and its own way to commit: after reads, synchronously or not, when
partitions are revoked, or whenever the library does. With ``offset_deletes_hz`` processes outside
of the groups delete committed offsets, which the coordinator rejects while a member subscribes to
the topic; librdkafka cannot do this.

At the end new members join each group once more, and report their start positions.
"""

import dataclasses
import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

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
)
from model.op import MicroOp, Op
from model.plan import Plan
from workloads import needs, offsets, send_poll
from workloads.client import aio_group, confluent_group
from workloads.common import group_members
from workloads.common.options import COMMON_LEAST, send_timeout_s
from workloads.common.partitions import created, partitions_of
from workloads.common.reading import CatchUp, Watchers
from workloads.common.topics import Topics, topics_of
from workloads.offsets import Askers, LastOffsets, groups_of

LEAST: Mapping[str, float] = {
    **COMMON_LEAST,
    "groups": 1,
    "leave_p": 0.0,
    "freeze_p": 0.0,
    "freeze_max_ms": 1,
    "static_p": 0.0,
    "offset_deletes_hz": 0.0,
    "settle_s": 0.0,
}
"""The smallest number that each of the plan's options may be."""

SHARES = ("leave_p", "freeze_p", "static_p")
"""Options that are probabilities."""

COMMITS = ("sync", "async", "listener", "auto")
"""The ways in which members commit: after reads, when partitions are revoked, or automatically."""

ASSIGNORS: Mapping[str, tuple[str, ...]] = {
    "librdkafka": confluent_group.ASSIGNORS,
    "aiokafka": tuple(aio_group.ASSIGNORS),
}
"""The assignors by client."""

COMMIT_P = 0.3
"""The probability that a member that has read records commits before it reads more."""
ASKED_HZ = 2.0
"""How often per second committed offsets are requested."""
ASKED_MAX = 3
"""The largest number of partitions in such a request."""
WATCHES_HZ = 0.5
"""How often per second watermarks are requested."""


class How(NamedTuple):
    """How the members of a group are configured."""

    assignor: str
    commit: str

    def micro_op(self, group: str, topics: Iterable[str], instance: str | None) -> MicroOp:
        """Return the subscription of one of them."""
        options = {"instance": instance, "assignor": self.assignor, "commit": self.commit}
        return ["subscribe", group, sorted(topics), options]


class _Life(msgspec.Struct, frozen=True):
    """The state of a process that is a member."""

    group: str
    topics: frozenset[str]
    uncommitted: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The offset after the last record read and not committed, by owned partition."""

    def after_operation(self, micro_ops: list[Any]) -> "_Life":
        """Return the state after an operation with these micro-operations."""
        uncommitted = dict(self.uncommitted)
        for micro_op in micro_ops:
            match micro_op:
                case ["revoked" | "lost", _, _, keys]:
                    for key in keys:
                        uncommitted.pop(key, None)
                case ["poll", records]:
                    uncommitted |= {key: pairs[-1][0] + 1 for key, pairs in records.items()}
                case _:
                    pass
        return msgspec.structs.replace(self, uncommitted=uncommitted)


class Members(msgspec.Struct, frozen=True):
    """Subscribes, polls and commits; each thread belongs to one group and may be static."""

    groups: tuple[str, ...]
    how: Mapping[str, How]
    """How the members of each group are configured."""
    instances: Mapping[int, str]
    """The ``group.instance.id`` of each static thread."""
    freeze_p: float
    freeze_max_ms: int
    topics: frozenset[str] = frozenset()
    lives: Mapping[int, _Life] = msgspec.field(default_factory=dict)
    """The state of each live process that has subscribed."""

    def op(self, ctx: Context) -> Answer:
        if not self.topics or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        life = self.lives.get(process)
        if life is None or life.topics != self.topics:
            return self._subscribe(process, process % ctx.concurrency), self
        commits = self.how[life.group].commit in ("sync", "async")
        freeze: list[MicroOp] = []
        if ctx.rng.random() < self.freeze_p:
            freeze = [["freeze", life.group, ctx.rng.randint(1, self.freeze_max_ms)]]
        if commits and life.uncommitted and (freeze or ctx.rng.random() < COMMIT_P):
            how = self.how[life.group].commit
            value = [*freeze, ["commit", life.group, dict(life.uncommitted), how]]
            return Invocation(process=process, f="commit", value=value), self
        if freeze:
            return Invocation(process=process, f="freeze", value=freeze), self
        return Invocation(process=process, f="poll", value=[["poll"]]), self

    def update(self, event: Op) -> Generator:
        if new := created(event):
            topics = self.topics | {key.rpartition("-")[0] for key in new}
            return msgspec.structs.replace(self, topics=topics)
        life = self.lives.get(event.process)
        match event.f, event.type:
            case "subscribe", "ok":
                [[_, group, topics, _]] = event.value
                fresh = life or _Life(group, frozenset())
                return self._with(
                    event.process, msgspec.structs.replace(fresh, topics=frozenset(topics))
                )
            case ("leave", "ok" | "fail" | "info") | (_, "info"):
                return self._with(event.process, None) if life is not None else self
            case "poll", "ok" if life is not None:
                return self._with(event.process, life.after_operation(event.value))
            case "commit", "ok" | "fail" if life is not None:
                return self._with(event.process, msgspec.structs.replace(life, uncommitted={}))
            case _:
                return self

    def _subscribe(self, process: int, thread: int) -> Invocation:
        group = self.groups[thread % len(self.groups)]
        micro_op = self.how[group].micro_op(group, self.topics, self.instances.get(thread))
        return Invocation(process=process, f="subscribe", value=[micro_op])

    def _with(self, process: int, life: _Life | None) -> "Members":
        lives = {p: each for p, each in self.lives.items() if p != process}
        if life is not None:
            lives[process] = life
        return msgspec.structs.replace(self, lives=lives)


class Departures(msgspec.Struct, frozen=True):
    """Makes a member leave, or a process crash."""

    leave_p: float
    members: Mapping[int, str] = msgspec.field(default_factory=dict)
    """The group of each live process that has subscribed."""

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if process in self.members and ctx.rng.random() < self.leave_p:
            value = [["leave", self.members[process]]]
            return Invocation(process=process, f="leave", value=value), self
        return Invocation(process=process, f="crash"), self

    def update(self, event: Op) -> Generator:
        if event.f == "subscribe" and event.type == "ok":
            members = {**self.members, event.process: event.value[0][1]}
            return msgspec.structs.replace(self, members=members)
        if event.process in self.members and (event.type == "info" or event.f == "leave"):
            members = {p: group for p, group in self.members.items() if p != event.process}
            return msgspec.structs.replace(self, members=members)
        return self


class Deleters(msgspec.Struct, frozen=True):
    """Deletes the committed offset of a group and a partition."""

    groups: tuple[str, ...]
    keys: tuple[str, ...] = ()

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        group, key = ctx.rng.choice(self.groups), ctx.rng.choice(self.keys)
        value = [["commit", group, {key: None}, "delete"]]
        return Invocation(process=ctx.rng.choice(ctx.free), f="commit", value=value), self

    def update(self, event: Op) -> Generator:
        new = created(event)
        return msgspec.structs.replace(self, keys=(*self.keys, *new)) if new else self


class Rejoin(msgspec.Struct, frozen=True):
    """Joins one new member to each group after the other, until it is assigned partitions."""

    left: tuple[str, ...]
    how: Mapping[str, How]
    topics: tuple[str, ...]
    joined: frozenset[int] = frozenset()
    """Processes that are members; used for membership tests only."""
    done: frozenset[int] = frozenset()
    """Those of them that must leave next."""

    def op(self, ctx: Context) -> Answer:
        if not self.left or not self.topics:
            return None, self
        if not ctx.free:
            return PENDING, self
        process, group = ctx.rng.choice(ctx.free), self.left[0]
        if process in self.done:
            return Invocation(process=process, f="leave", value=[["leave", group]]), self
        if process in self.joined:
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        micro_op = self.how[group].micro_op(group, self.topics, None)
        return Invocation(process=process, f="subscribe", value=[micro_op]), self

    def update(self, event: Op) -> Generator:
        process = frozenset({event.process})
        match event.f, event.type:
            case "subscribe", "ok":
                return msgspec.structs.replace(self, joined=self.joined | process)
            case "poll", "ok" if event.process in self.joined:
                assigned = any(each[0] == "assigned" and each[3] for each in event.value)
                done = self.done | process if assigned else self.done
                return msgspec.structs.replace(self, done=done)
            case "leave", "ok" | "info":
                return msgspec.structs.replace(self, left=self.left[1:])
            case _:
                return self


def hows(plan: Plan) -> dict[str, How]:
    """Return the assignor and the way to commit of each group, which the seed chooses."""
    known = ASSIGNORS[plan.options["client"]]
    chosen = {}
    for group in groups_of(plan):
        rng = random.Random(f"{plan.seed}:{group}")
        chosen[group] = How(
            assignor=plan.options["assignor"] or rng.choice(known),
            commit=plan.options["commit"] or rng.choice(COMMITS),
        )
    return chosen


def instances(plan: Plan) -> dict[int, str]:
    """Return the ``group.instance.id`` of each static thread."""
    rng = random.Random(f"{plan.seed}:instances")
    share = float(plan.options["static_p"])
    return {
        thread: f"thread-{thread}" for thread in range(plan.concurrency) if rng.random() < share
    }


def _writers(plan: Plan) -> int:
    """Return how many of the threads write: about a quarter, at least one."""
    return max(1, round(plan.concurrency / 4))


def main(plan: Plan) -> Generator:
    """Run writers, which also read a little, and members until the time limit."""
    asked = plan.options
    writers = _writers(plan)
    members = plan.concurrency - writers
    life_s = float(asked["process_life_s"])
    deletes_hz = float(asked["offset_deletes_hz"])
    writing = AnyOf(
        (
            Topics(topics_of(plan), int(asked["partitions"])),
            Stagger(life_s / writers, Repeat("crash"), next_s=life_s / writers),
            Stagger(1 / plan.rate_hz, send_poll.Senders(int(asked["batch_max"]))),
            Stagger(1 / ASKED_HZ, Askers(groups_of(plan), ASKED_MAX)),
            Stagger(1 / WATCHES_HZ, Watchers()),
            *([Stagger(1 / deletes_hz, Deleters(groups_of(plan)))] if deletes_hz else []),
            Stagger(1 / offsets.POLLS_HZ, send_poll.Followers(offsets.FOLLOWED_MAX)),
        )
    )
    belonging = AnyOf(
        (
            Stagger(life_s / members, Departures(float(asked["leave_p"])), next_s=life_s / members),
            Members(
                groups=groups_of(plan),
                how=hows(plan),
                instances=instances(plan),
                freeze_p=float(asked["freeze_p"]),
                freeze_max_ms=int(asked["freeze_max_ms"]),
            ),
        )
    )
    return Until(plan.time_limit_s, Reserve(((writers, writing), (members, belonging))))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Join the groups with one thread; request committed offsets and read with the others."""
    partitions = int(plan.options["partitions"])
    every = tuple(key for _, topic in topics_of(plan) for key in partitions_of(topic, partitions))
    topics = tuple(dict.fromkeys(key.rpartition("-")[0] for key in keys))
    joining = Rejoin(groups_of(plan), hows(plan), topics)
    settled_s = offsets.settled_s(plan, until_s)
    last = LastOffsets(left=groups_of(plan), keys=every, from_s=settled_s)
    reading = AnyOf((last, CatchUp(left=keys, keys=keys)))
    return Until(until_s, Reserve(((1, joining), (plan.concurrency - 1, reading))))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if plan.concurrency < 2:
        return "--concurrency: groups needs at least 2, a writer and a member"
    if (misfit := options.refusal(plan.options, LEAST)) is not None:
        return misfit
    for name in SHARES:
        if plan.options[name] > 1:
            return f"options: {name}={plan.options[name]}: must be from 0 to 1"
    if plan.options["subscribe"] is not True:
        return f"options: subscribe={plan.options['subscribe']}: must be true"
    if (misfit := group_members.refuse(plan) or offsets.refuse_settling(plan)) is not None:
        return misfit
    if plan.options["offset_deletes_hz"] and plan.options["client"] == "librdkafka":
        return (
            "options: offset_deletes_hz: confluent-kafka cannot delete offsets; use client=aiokafka"
        )
    known = {"assignor": ASSIGNORS[plan.options["client"]], "commit": COMMITS}
    for name, values in known.items():
        if plan.options[name] not in ("", *values):
            return f"options: {name}={plan.options[name]}: must be one of {', '.join(values)}"
    return None


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than a member may freeze."""
    return send_timeout_s(plan) + int(plan.options["freeze_max_ms"]) / 1000


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of groups and members, their lives, freezes and timeouts.

    Also drawn are which members are static, whether offsets are deleted, and how long those of an
    empty group are kept.
    """
    options = {
        "groups": rng.choice((1, 1, 2)),
        "process_life_s": rng.choice((4.0, 10.0, 20.0, 40.0)),
        "freeze_p": rng.choice((0.0, 0.01, 0.03, 0.1)),
        "leave_p": rng.choice((0.2, 0.5, 0.8)),
        "static_p": rng.choice((0.0, 0.3, 1.0)),
        "settle_s": offsets.SETTLED_S,
    }
    session_ms = rng.choice((1000, 1500, 3000))
    consumer = {
        "session.timeout.ms": str(session_ms),
        "heartbeat.interval.ms": str(rng.choice((200, 300))),
        "max.poll.interval.ms": str(rng.choice((session_ms, 5000))),
    }
    options["offset_deletes_hz"] = rng.choice((0.0, 0.0, 2.0))
    plan = {"rate_hz": round(rng.uniform(10.0, 20.0), 2), "concurrency": rng.randint(6, 10)}
    # No group that its members return to is empty for a minute.
    broker = {"offsets.retention.minutes": rng.choice(("10080", "10080", "1"))}
    return {"plan": plan, "options": options, "consumer": consumer, "broker": broker}


WORKLOAD = dataclasses.replace(
    offsets.WORKLOAD,
    name="groups",
    rate_hz=100.0,
    options={
        "client": "librdkafka",
        "subscribe": True,
        "groups": 2,
        # Of each group; if empty, the seed chooses.
        "assignor": "",
        "commit": "",
        "topics": 2,
        "late_topics": 1,
        "partitions": 3,
        "replication_factor": 3,
        "replicas": [],
        "batch_max": 6,
        "process_life_s": 10.0,
        "leave_p": 0.5,
        "freeze_p": 0.01,
        "freeze_max_ms": 6000,
        "static_p": 0.3,
        # How often per second committed offsets are deleted; 0: never.
        "offset_deletes_hz": 0.0,
        "settle_s": 0.0,
        "final_time_limit_s": 60.0,
    },
    refuse=refuse,
    needs=needs.of_members,
    main=main,
    final=final,
    client=group_members.client,
    op_timeout_s=op_timeout_s,
    coordinators=offsets.group_coordinators,
    asked=lambda plan: ("Produce", "Fetch", "OffsetFetch", "LeaveGroup", *group_members.ASKED),
    trigger_ops=("commit", "subscribe", "leave"),
    vary=vary,
)
