"""What workloads with transactions share: ids, clients, timeouts, and impossible plans."""

import functools
import random
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from model.connection import Connection
from model.generator import Context
from model.op import MicroOp
from model.plan import Plan
from model.roles import Client
from workloads.client import aio_txn, confluent_transform, confluent_txn, raw_txn
from workloads.client.common import Settings
from workloads.common import settings
from workloads.common.options import refuse_cluster
from workloads.common.topics import topic_settings

ASKED = ("Produce", "Fetch", "InitProducerId", "AddPartitionsToTxn", "EndTxn")
"""The APIs that producers and consumers of transactions call again and again."""

SHARES = ("abort_p", "delay_p", "assign_p", "leave_p", "new_id_p")
"""Options that are probabilities."""

RAW = "raw"
"""The client that gives up batches early; see :mod:`workloads.client.raw_txn`."""


def identity(ctx: Context, process: int, new_id_p: float) -> MicroOp:
    """Return the ``init`` of a process: with ``new_id_p`` a new id, otherwise its thread's id."""
    new = ctx.rng.random() < new_id_p
    return ["init", f"process-{process}" if new else f"thread-{process % ctx.concurrency}"]


def coordinators(plan: Plan) -> tuple[str, ...]:
    """Return the coordinators of the transactional ids that processes inherit."""
    return tuple(f"transaction-coordinator:thread-{n}" for n in range(plan.concurrency))


class Make(Protocol):
    """Makes the client of a process, like :data:`~workloads.common.clients.Make`."""

    def __call__(self, settings: Settings, *, asks_again: bool = False) -> Client: ...


CLIENTS: Mapping[str, Make] = {
    "librdkafka": confluent_txn.TransactionalConfluentClient,
    "aiokafka": aio_txn.TransactionalAioClient,
    RAW: raw_txn.RawClient,
}
"""The clients, by the value of the option ``client``."""


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make = CLIENTS[plan.options["client"]]
    if plan.options.get("subscribe") is True:
        make = confluent_transform.SubscribedConfluentClient
    topic = topic_settings(plan)
    if plan.options["client"] == RAW and "first_sequence" in plan.options:
        first = plan.options["first_sequence"]
        make = functools.partial(raw_txn.RawClient, first_sequence=first)
    again = asks_again(plan)
    return make(Settings.of(plan, connection, process, topic), asks_again=again)


def asks_again(plan: Plan) -> bool:
    """Does a producer continue after a commit or abort without a response?"""
    return plan.options.get("doubt_ends") is False


def refuse_transactions(plan: Plan) -> str | None:
    """Return why no transaction would be committed or none could be judged, or ``None``."""
    for name in SHARES:
        if name in plan.options and plan.options[name] > 1:
            return f"options: {name}={plan.options[name]}: must be from 0 to 1"
    producer = plan.producer
    if "transactional.id" in producer:
        return "--set producer.transactional.id: each process gets its own from the workload"
    if producer.get("acks") not in ("all", "-1"):
        return f"--set producer.acks={producer.get('acks')}: a transaction needs acks=all"
    if producer.get("enable.idempotence") != "true":
        return "--set producer.enable.idempotence: a transaction needs it"
    session_ms = plan.consumer.get("session.timeout.ms", "45000")
    shortest_ms = plan.broker.get("group.min.session.timeout.ms", "6000")
    if session_ms.isdecimal() and shortest_ms.isdecimal() and int(session_ms) < int(shortest_ms):
        return (
            f"--set consumer.session.timeout.ms={session_ms}: less than"
            f" broker.group.min.session.timeout.ms={shortest_ms}: no group would accept a member"
        )
    timeout_ms = producer.get("transaction.timeout.ms", "60000")
    longest_ms = plan.broker.get("transaction.max.timeout.ms", "900000")
    if timeout_ms.isdecimal() and longest_ms.isdecimal() and int(timeout_ms) > int(longest_ms):
        return (
            f"--set producer.transaction.timeout.ms={timeout_ms}: more than"
            f" broker.transaction.max.timeout.ms={longest_ms}: no producer would get a producer id"
        )
    if plan.options["client"] == RAW:  # it takes aiokafka's settings, and reads with aiokafka
        options = {**plan.options, "client": "aiokafka"}
        plan = msgspec.structs.replace(plan, options=options)
    return refuse_cluster(plan)


def draw_rate(rng: random.Random) -> dict[str, Any]:
    """Draw the rate of transactions.

    Other workloads get a lower rate for larger batches, which transactions do not have.
    """
    return {"rate_hz": round(rng.uniform(8.0, 15.0), 2)}


def draw_timeouts(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the timeouts of transactions, how long they take, and how often they are aborted."""
    timeout_ms = rng.choice((1000, 1000, 2000, 4000))
    settings = dict.fromkeys(("transaction.timeout.ms", "delivery.timeout.ms"), str(timeout_ms))
    settings |= dict.fromkeys(("request.timeout.ms", "socket.timeout.ms"), str(timeout_ms - 100))
    options = {
        "delay_max_ms": rng.choice((100, timeout_ms, 2 * timeout_ms)),
        "abort_p": rng.choice((0.05, 0.1, 0.3)),
        "new_id_p": rng.choice((0.0, 0.25, 0.75)),
    }
    return {"producer": settings, "options": options}


TIMEOUTS: Mapping[str, str] = {
    # Jepsen's timeouts: most faults last longer. The timeouts of the steps of a transaction are as
    # short, as librdkafka demands.
    "transaction.timeout.ms": "1000",
    "delivery.timeout.ms": "1000",
    "request.timeout.ms": "900",
    "socket.timeout.ms": "900",
}
"""The timeouts of a transactional producer."""


BROKER: Mapping[str, str] = {
    **settings.BROKER,
    # Few partitions: each one has to be led, fetched by its followers, and cleaned.
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
"""The settings of brokers with coordinators."""


PRODUCER: Mapping[str, str] = {**settings.PRODUCER, **TIMEOUTS}
"""The settings of transactional producers."""

CONSUMER: Mapping[str, str] = {
    **settings.CONSUMER,
    "isolation.level": "read_committed",
    # Short, so that a silent member's session expires within a test.
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "300",
    "max.poll.interval.ms": "4000",
}
"""The settings of consumers of transactions."""
