"""Committed offsets as registers, one per group and partition, kept by the group's coordinator.

No group has members: processes commit offsets without being members, each number of a group and
partition once and each larger than the one before; they delete some (``delete_p``; not with
librdkafka), and fetch committed offsets. So each offset that is read identifies its commit, and
after an acknowledged commit only commits that were in flight with it may leave a smaller offset.
Most commits have metadata, which must be returned unchanged. Some are made in a transaction
(``txn_p``; with aiokafka), and sometimes there is a plain commit in the middle of it: it comes
later, and takes effect. At the end, or ``settle_s`` later, new processes fetch all committed
offsets. Records are written and read as well: a log that is not written to shows no problem of its
leader.
"""

import random
from collections.abc import Mapping
from typing import Any
from zlib import crc32

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
    Stagger,
    Until,
    Wait,
)
from model.op import Op
from model.plan import Plan
from model.roles import Client
from workloads import needs, send_poll
from workloads.client import raw_group, transaction
from workloads.client.common import Settings
from workloads.common import group_members, settings, transactional
from workloads.common.options import COMMON_LEAST, send_timeout_s
from workloads.common.partitions import created, partitions_of
from workloads.common.reading import CatchUp, Watchers
from workloads.common.topics import Topics, first_partitions, topic_settings, topics_of
from workloads.package import Workload

LEAST: Mapping[str, float] = {
    **COMMON_LEAST,
    "groups": 1,
    "committed_max": 1,
    "sends_hz": 0.01,
    "delete_p": 0.0,
    "txn_p": 0.0,
    "settle_s": 0.0,
}
"""The smallest number that each of the plan's options may be."""

WATCHES_HZ = 1.0
"""How often per second watermarks are requested."""
POLLS_HZ = 4.0
PLAINLY_P = 0.5
"""The probability that a transaction's partition is also committed plainly during it."""
FOLLOWED_MAX = 4
"""The largest number of partitions that a process reads."""
SETTLED_S = 16.0
"""One second more than the time in which, for checkers, a broker may not know the new leader."""


def names_of(groups: int) -> tuple[str, ...]:
    """Return the names of that number of groups."""
    return tuple(f"group{number}" for number in range(groups))


def with_metadata(group: str, key: str, offset: int) -> int | list[int]:
    """Return an offset with its metadata, a number of its own; one in eight has none."""
    metadata = crc32(f"{group} {key} {offset}".encode())
    return [offset, metadata] if metadata % 8 else offset


class Committers(msgspec.Struct, frozen=True):
    """Commits the next numbers of some partitions of a group, or deletes their committed offsets.

    A deletion is recorded as a commit of ``None``.
    """

    groups: tuple[str, ...]
    count_max: int
    delete_p: float = 0.0
    """The probability of a deletion."""
    txn_p: float = 0.0
    """The probability of a transaction."""
    ready: frozenset[int] = frozenset()
    """Processes with a transactional id; used for membership tests only."""
    keys: tuple[str, ...] = ()
    next_offsets: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """The next offset to commit, by group and partition."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        group = ctx.rng.choice(self.groups)
        count = ctx.rng.randint(1, min(self.count_max, len(self.keys)))
        chosen = sorted(ctx.rng.sample(self.keys, count))
        process = ctx.rng.choice(ctx.free)
        if self.delete_p and ctx.rng.random() < self.delete_p:
            value = [["commit", group, dict.fromkeys(chosen), "delete"]]
            return Invocation(process=process, f="commit", value=value), self
        if not self.txn_p or ctx.rng.random() >= self.txn_p:
            places, later = self._next(group, chosen)
            value = [["commit", group, places, "sync"]]
            return Invocation(process=process, f="commit", value=value), later
        if process not in self.ready:
            value = [transactional.identity(ctx, process, new_id_p=0.0)]
            return Invocation(process=process, f="init", value=value), self
        places, later = self._next(group, chosen)
        value = [["commit", group, places]]
        again = [key for key in chosen if ctx.rng.random() < PLAINLY_P]
        if again:
            places, later = later._next(group, again)
            value.append(["commit-plainly", group, places])
        return Invocation(process=process, f="txn", value=value), later

    def _next(self, group: str, keys: list[str]) -> tuple[dict[str, int | list[int]], "Committers"]:
        """Return the next offsets of these partitions, and the generator after they are used."""
        offsets = {key: self.next_offsets.get((group, key), 1) for key in keys}
        passed = {(group, key): offset + 1 for key, offset in offsets.items()}
        places = {key: with_metadata(group, key, offset) for key, offset in offsets.items()}
        return places, msgspec.structs.replace(self, next_offsets=self.next_offsets | passed)

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(self, keys=(*self.keys, *new))
        if event.f == "init" and event.type == "ok":
            return msgspec.structs.replace(self, ready=self.ready | {event.process})
        return self


class Askers(msgspec.Struct, frozen=True):
    """Requests committed offsets of some partitions of a group."""

    groups: tuple[str, ...]
    count_max: int
    keys: tuple[str, ...] = ()

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        count = ctx.rng.randint(1, min(self.count_max, len(self.keys)))
        wanted = dict.fromkeys(sorted(ctx.rng.sample(self.keys, count)))
        value = [["committed", ctx.rng.choice(self.groups), wanted]]
        return Invocation(process=ctx.rng.choice(ctx.free), f="committed", value=value), self

    def update(self, event: Op) -> Generator:
        new = created(event)
        return msgspec.structs.replace(self, keys=(*self.keys, *new)) if new else self


class LastOffsets(msgspec.Struct, frozen=True):
    """Requests all committed offsets of each group, until there is a response."""

    left: tuple[str, ...]
    """Groups without a response."""
    keys: tuple[str, ...]
    from_s: float = 0.0
    """The time at which the requests begin."""
    asked: frozenset[str] = frozenset()
    """Groups with a request in progress; used for membership tests only."""

    def op(self, ctx: Context) -> Answer:
        if not self.left:
            return None, self
        if ctx.now_s < self.from_s:
            return Wait(self.from_s), self
        waiting = [group for group in self.left if group not in self.asked]
        if not waiting or not ctx.free:
            return PENDING, self
        value = [["committed", waiting[0], dict.fromkeys(self.keys)]]
        return Invocation(process=ctx.rng.choice(ctx.free), f="committed", value=value), self

    def update(self, event: Op) -> Generator:
        if event.f != "committed":
            return self
        group = event.value[0][1]
        asked = self.asked | {group} if event.type == "invoke" else self.asked - {group}
        fetched = group if event.type == "ok" else None
        left = tuple(each for each in self.left if each != fetched)
        return msgspec.structs.replace(self, left=left, asked=asked)


def main(plan: Plan) -> Generator:
    """Run all kinds of operations in all processes until the time limit."""
    life_s = float(plan.options["process_life_s"])
    gap_s = life_s / plan.concurrency
    groups, count_max = groups_of(plan), int(plan.options["committed_max"])
    delete_p, txn_p = float(plan.options["delete_p"]), float(plan.options["txn_p"])
    sends_hz = float(plan.options["sends_hz"])
    senders = send_poll.Senders(int(plan.options["batch_max"]))
    work = AnyOf(
        (
            Topics(topics_of(plan), int(plan.options["partitions"])),
            Stagger(gap_s, Repeat("crash"), next_s=gap_s),
            Stagger(1 / WATCHES_HZ, Watchers()),
            Stagger(1 / sends_hz, senders),
            Stagger(1 / POLLS_HZ, send_poll.Followers(FOLLOWED_MAX)),
            Stagger(1 / plan.rate_hz, Committers(groups, count_max, delete_p, txn_p)),
            Stagger(1 / plan.rate_hz, Askers(groups, count_max)),
        )
    )
    return Until(plan.time_limit_s, work)


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Fetch every group's committed offsets of all possible partitions, and read every log."""
    partitions = int(plan.options["partitions"])
    every = tuple(key for _, topic in topics_of(plan) for key in partitions_of(topic, partitions))
    last = LastOffsets(left=groups_of(plan), keys=every, from_s=settled_s(plan, until_s))
    return Until(until_s, AnyOf((last, CatchUp(left=keys, keys=keys))))


def settled_s(plan: Plan, until_s: float) -> float:
    """Return the time from which no former coordinator answers any more.

    It is ``settle_s`` after the beginning of the last phase.
    """
    return until_s - float(plan.options["final_time_limit_s"]) + float(plan.options["settle_s"])


def groups_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the plan's groups."""
    return names_of(int(plan.options["groups"]))


def group_coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinators of its groups, as roles."""
    return tuple(f"group-coordinator:{group}" for group in groups_of(plan))


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinators of its groups, and of its transactions."""
    of_ids = transactional.coordinators(plan) if plan.options["txn_p"] else ()
    return (*group_coordinators(plan), *of_ids)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    if (misfit := options.refusal(plan.options, LEAST)) is not None:
        return misfit
    if plan.options["delete_p"] and plan.options["client"] == "librdkafka":
        return "options: delete_p: confluent-kafka cannot delete offsets; use client=aiokafka"
    if plan.options["txn_p"] and plan.options["client"] == "librdkafka":
        return (
            "options: txn_p: no client of librdkafka commits both within and outside of"
            " transactions; use client=aiokafka"
        )
    return group_members.refuse(plan) or refuse_settling(plan)


def refuse_settling(plan: Plan) -> str | None:
    """Return why the final requests would never be made, or ``None``."""
    settle_s, limit_s = plan.options["settle_s"], plan.options["final_time_limit_s"]
    if settle_s < limit_s:
        return None
    return f"options: settle_s={settle_s}: must be less than final_time_limit_s={limit_s}"


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    if not plan.options["txn_p"]:
        return group_members.client(plan, connection, process)
    topic = topic_settings(plan)
    return raw_group.RawGroupClient(Settings.of(plan, connection, process, topic))


def op_timeout_s(plan: Plan) -> float:
    """Return a time longer than a client takes to give up a record, or a transaction's offsets.

    Each of the four steps of a transaction has a time limit.
    """
    bounded_s = 4 * transaction.end_timeout_s(plan.producer) + transaction.INIT_TIMEOUT_S
    return max(send_timeout_s(plan), bounded_s + 15.0 if plan.options["txn_p"] else 0.0)


def asked(plan: Plan) -> tuple[str, ...]:
    """Return the APIs that its clients call again and again."""
    of_txn = ("AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn") if plan.options["txn_p"] else ()
    return ("Produce", "Fetch", "OffsetCommit", "OffsetFetch", *of_txn)


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw how much is deleted or in transactions, and whether coordinators' logs are compacted.

    The final requests wait until no former coordinator can answer: in simulation time costs
    nothing.
    """
    delete_p, txn_p = rng.choice((0.0, 0.05, 0.2)), rng.choice((0.0, 0.1, 0.5))
    compacted = {"offsets.topic.segment.bytes": "2048", "log.cleaner.backoff.ms": "500"}
    return {
        "options": {"delete_p": delete_p, "txn_p": txn_p, "settle_s": SETTLED_S},
        "broker": rng.choice(({}, compacted)),
    }


WORKLOAD = Workload(
    name="offsets",
    rate_hz=100.0,
    options={
        "client": "librdkafka",
        "groups": 3,
        "topics": 2,
        "late_topics": 1,
        "partitions": 2,
        "replication_factor": 3,
        "replicas": [],
        "batch_max": 4,
        "sends_hz": 4.0,
        "committed_max": 3,
        "process_life_s": 10.0,
        "delete_p": 0.0,
        "txn_p": 0.0,
        "settle_s": 0.0,
        "final_time_limit_s": 60.0,
    },
    # Few partitions, as for coordinators of groups.
    broker={**group_members.BROKER, "transaction.state.log.num.partitions": "4"},
    producer={**settings.PRODUCER, "transaction.timeout.ms": "4000"},
    consumer=group_members.CONSUMER,
    refuse=refuse,
    needs=needs.of_members,
    main=main,
    final=final,
    client=client,
    op_timeout_s=op_timeout_s,
    topics=first_partitions,
    coordinators=coordinators,
    asked=asked,
    trigger_ops=("commit",),
    vary=vary,
)
