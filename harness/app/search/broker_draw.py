"""Draws the brokers' settings: every setting that changes a path in the broker has several values.

The tables name each setting of the broker once, with the values that are drawn or with the reason
why it is not drawn. A value that occurs twice is drawn twice as often.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.app.search.layouts import Layout
from model.plan import Plan

NEVER_MS = UNLIMITED = 2**63 - 1
NO_LIMIT = 2**31 - 1
MIB = 1 << 20
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
WEEK_MS = 7 * 86_400_000
SHORT_WAIT_MS = 100
"""How long a fetch of a follower waits for more than one byte.

Records are committed only after this wait, and a transaction waits several times.
"""

DRAWN_TOGETHER: Mapping[str, Sequence[Any]] = {
    "replica.fetch.wait.max.ms": (200, 500, 500, 500),
    "zookeeper.session.timeout.ms": (1000, 2000, 2000, 4000),
    "replica.lag.time.max.ms": (1000, 1500, 1500, 3000),
    "replica.fetch.backoff.ms": (50, 100, 500),
    "replica.socket.timeout.ms": (1000, 1500, 3000),
    "controller.socket.timeout.ms": (1000, 1500, 3000),
    "request.timeout.ms": (2000, 3000),
    "replica.fetch.max.bytes": (512, 4096, MIB, MIB),
    "replica.high.watermark.checkpoint.interval.ms": (200, 1000, 5000),
    "log.flush.offset.checkpoint.interval.ms": (1000, 5000),
    "leader.imbalance.check.interval.seconds": (3, 3, 10, 30),
    "auto.leader.rebalance.enable": ("true", "true", "false"),
    "log.segment.bytes": (),
    "log.index.interval.bytes": (64, 4096),
}
"""Drawn in this order from one random generator; the layout has the sizes of segments."""

DRAWN: Mapping[str, Sequence[Any]] = {
    # Connections and requests.
    "connections.max.idle.ms": (600_000, 600_000, 2000),
    "socket.request.max.bytes": (100 * MIB, 100 * MIB, 65_536),
    "queued.max.request.bytes": (-1, -1, 1024, 16_384),
    "queued.max.requests": (500, 500, 1, 2),
    "fetch.max.bytes": (55 * MIB, 55 * MIB, 1024, 8192),
    "max.incremental.fetch.session.cache.slots": (1000, 1000, 0, 1),
    "quota.producer.default": (UNLIMITED, UNLIMITED, UNLIMITED, 20_000),
    "quota.consumer.default": (UNLIMITED, UNLIMITED, UNLIMITED, 50_000),
    "quota.window.num": (11, 11, 2),
    "quota.window.size.seconds": (1, 1, 2),
    # Replication and the controller.
    "replica.selector.class": ("", RACK_AWARE, RACK_AWARE),
    "replica.fetch.min.bytes": (1, 1, 1, 2000),
    "replica.fetch.response.max.bytes": (10 * MIB, 10 * MIB, 1024, 16_384),
    "controlled.shutdown.enable": ("true", "true", "true", "false"),
    "controlled.shutdown.max.retries": (3, 3, 0, 10),
    "controlled.shutdown.retry.backoff.ms": (200, 200, 20, 1000),
    # Logs.
    "log.message.timestamp.type": ("CreateTime", "CreateTime", "CreateTime", "LogAppendTime"),
    "compression.type": (
        *["producer"] * 5,
        *("uncompressed", "gzip", "snappy", "lz4", "zstd"),
    ),
    "log.roll.jitter.ms": (0, 0, 300),
    "log.roll.ms": (WEEK_MS, WEEK_MS, 500, 5000),
    "log.index.size.max.bytes": (10 * MIB, 10 * MIB, 240, 1200),
    "log.retention.check.interval.ms": (5000, 5000, 300),
    "log.segment.delete.delay.ms": (60_000, 60_000, 0, 1000),
    "log.flush.interval.ms": (NEVER_MS, NEVER_MS, 200),
    "log.flush.scheduler.interval.ms": (1000, 1000, 100),
    "log.cleaner.backoff.ms": (15_000, 300, 2000),
    "log.cleaner.dedupe.buffer.size": (128 * MIB, 128 * MIB, 24, 240),
    "log.cleaner.min.cleanable.ratio": (0.5, 0.01),
    "log.cleaner.min.compaction.lag.ms": (0, 0, 2000),
    "log.cleaner.max.compaction.lag.ms": (NEVER_MS, NEVER_MS, 3000),
    "producer.id.expiration.ms": (WEEK_MS, WEEK_MS, 30_000),
    "replica.alter.log.dirs.io.max.bytes.per.second": (UNLIMITED, UNLIMITED, 100, 1000),
    # Groups.
    "group.initial.rebalance.delay.ms": (0, 200, 200, 1000),
    "group.max.size": (NO_LIMIT, NO_LIMIT, NO_LIMIT, 3),
    "offsets.topic.num.partitions": (4, 4, 1, 8),
    "offsets.topic.segment.bytes": (100 * MIB, 2048, 16_384),
    "offsets.load.buffer.size": (5 * MIB, 1, 512),
    "offsets.retention.check.interval.ms": (600_000, 200, 5000),
    "offsets.commit.timeout.ms": (3000, 3000, 500),
    # Transactions.
    "transaction.state.log.num.partitions": (4, 4, 1, 8),
    "transaction.state.log.min.isr": (2, 2, 1),
    "transaction.state.log.segment.bytes": (100 * MIB, 2048, 16_384),
    "transaction.state.log.load.buffer.size": (5 * MIB, 1, 512),
    "transactional.id.expiration.ms": (WEEK_MS, WEEK_MS, 15_000, 2000),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (500, 500, 100, 3000),
}
"""Each is drawn from a random generator of its own, so that another row changes no other draw."""

OF_THE_CLOCKS: Mapping[str, Sequence[Any]] = {
    "producer.id.expiration.check.interval.ms": (1000, 1000, 600_000),
}
"""Drawn after the offset of the clients' clocks, from the same random generator."""

OF_THE_LAYOUT = (
    "default.replication.factor",
    "log.flush.interval.messages",
    "min.insync.replicas",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)
"""Drawn with the numbers of brokers and replicas."""

OF_WORKLOADS = ("offsets.retention.minutes",)
"""Drawn by workloads (``Workload.vary``) whose expected results allow it."""

NOT_DRAWN: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "advertised.listeners",
            "broker.id",
            "faultline.metrics.listener",
            "inter.broker.listener.name",
            "listener.security.protocol.map",
            "listeners",
            "log.dirs",
            "zookeeper.connect",
        ),
        "the run itself decides identities, addresses and folders",
    ),
    **dict.fromkeys(
        (
            "allow.everyone.if.no.acl.found",
            "authorizer.class.name",
            "connection.failed.authentication.delay.ms",
            "connections.max.reauth.ms",
            "sasl.enabled.mechanisms",
            "sasl.mechanism.inter.broker.protocol",
            "sasl.server.max.receive.size",
            "security.inter.broker.protocol",
            "ssl.client.auth",
            "ssl.enabled.protocols",
            "ssl.endpoint.identification.algorithm",
            "ssl.key.password",
            "ssl.keystore.location",
            "ssl.keystore.type",
            "ssl.truststore.certificates",
            "ssl.truststore.location",
            "ssl.truststore.type",
            "super.users",
            "zookeeper.set.acl",
            "faultline.zookeeper.sasl.jaas.config",
        ),
        "the options `security` and `outsider_ms`, which are drawn, decide how listeners are"
        " protected",
    ),
    "broker.rack": "the option `racks` gives each broker one, and is drawn",
    **dict.fromkeys(
        ("max.connections", "max.connections.per.ip"),
        "a bound low enough to matter also excludes the harness, and such a run is UNKNOWN",
    ),
    **dict.fromkeys(
        ("group.max.session.timeout.ms", "group.min.session.timeout.ms"),
        "a member outside of these bounds is refused for good",
    ),
    "transaction.max.timeout.ms": "a producer that asks for more is refused for good",
    "message.max.bytes": "a batch beyond it is refused for good, also one of a coordinator, whose"
    " groups would then stand still",
    "offset.metadata.max.bytes": "no client of a workload commits metadata",
    **dict.fromkeys(
        (
            "follower.replication.throttled.rate",
            "leader.replication.throttled.rate",
            "replication.quota.window.num",
            "replication.quota.window.size.seconds",
        ),
        "only replicas that a topic's settings name are throttled, and no workload names any",
    ),
    **dict.fromkeys(
        (
            "alter.log.dirs.replication.quota.window.num",
            "alter.log.dirs.replication.quota.window.size.seconds",
        ),
        "the throttle itself, which is drawn, decides how long a move takes",
    ),
    "faultline.api.versions": "clients of workloads use the versions that the plan is about",
    "num.partitions": "workloads state the number of partitions of their topics",
    "auto.create.topics.enable": "a topic that a request for metadata creates has other settings"
    " than the plan, and comes back after it was deleted",
    "delete.topic.enable": "it refuses DeleteTopics, which a workload needs, and nothing else",
    **dict.fromkeys(
        ("log.message.downconversion.enable", "log.message.format.version"),
        "all of its values store and return the same batches",
    ),
    "unclean.leader.election.enable": "it changes the contract: records may be lost",
    "log.retention.bytes": "it changes the contract: records are deleted",
    "log.retention.ms": "it changes the contract: records are deleted",
    "log.cleanup.policy": "it changes the contract: old records of every topic are deleted; the"
    " workload `compacted` sets and changes it for its own topics",
    "log.cleaner.enable": "without the cleaner the workload `compacted` tests nothing",
    "log.cleaner.delete.retention.ms": "it changes the contract: a replica that lags misses"
    " tombstones; the workload `compacted` has an option for its own topics",
    "log.message.timestamp.difference.max.ms": "a leader whose clock has jumped refuses a batch"
    " that it has appended before, and the client then reports that it was never appended",
    "transaction.partition.verification.enable": "it changes the contract: transactions may hang"
    " (KIP-890)",
}
"""The settings that no search draws, and why."""

GUARDED: Mapping[str, Sequence[Any]] = {
    "producer.id.expiration.ms": DRAWN["producer.id.expiration.ms"],
    "offsets.retention.minutes": (10_080,),
}
"""Settings whose first value holds in runs with :data:`CLOCK_FAULTS`.

Kafka, too, forgets a producer that still repeats a batch, or the offsets of a group that is empty
for a moment, when a clock passes the shorter times at once.
"""
CLOCK_FAULTS = frozenset({"clock-jump", "clock-skew"})


def settings(rng: random.Random, seed: int, layout: Layout) -> dict[str, str]:
    """Return drawn settings of brokers in this layout, but for those that clocks decide."""
    values = {**DRAWN_TOGETHER, "log.segment.bytes": layout.segment_bytes}
    drawn: dict[str, Any] = {
        "default.replication.factor": layout.replication_factor,
        "min.insync.replicas": layout.min_isr,
        **{name: rng.choice(choices) for name, choices in values.items()},
    }
    if rng.random() < layout.synced:
        drawn["log.flush.interval.messages"] = rng.choice((1, 1, 20))
    for name, choices in DRAWN.items():
        drawn[name] = _of_setting(seed, name).choice(choices)
    if drawn["replica.fetch.min.bytes"] > 1:
        drawn["replica.fetch.wait.max.ms"] = SHORT_WAIT_MS
    few, all_ = min(3, layout.brokers), layout.brokers
    for name in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor"):
        drawn[name] = _of_setting(seed, name).choice((few, few, all_))
    return {name: str(value) for name, value in drawn.items()}


def of_clocks(rng: random.Random) -> dict[str, str]:
    """Return the settings that are drawn together with the clients' clocks."""
    return {name: str(rng.choice(choices)) for name, choices in OF_THE_CLOCKS.items()}


def guarded(plan: Plan, pinned: Mapping[str, str]) -> Plan:
    """Return the plan with usual values where its faults make a drawn one unsafe.

    ``pinned`` are the settings that the user has chosen; they stay.
    """
    if CLOCK_FAULTS.isdisjoint(fault.fault for fault in plan.schedule or ()):
        return plan
    usual = {
        name: str(values[0])
        for name, values in GUARDED.items()
        if name in plan.broker and name not in pinned
    }
    return msgspec.structs.replace(plan, broker={**plan.broker, **usual})


def _of_setting(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed}:search:broker:{name}")
