"""What workloads with consumer groups share: clients that can be members, and short timeouts."""

from collections.abc import Mapping

from model.connection import Connection
from model.plan import Plan
from model.roles import Client
from workloads.client import aio_group, confluent_group
from workloads.client.common import Settings
from workloads.common import settings
from workloads.common.clients import Make
from workloads.common.options import refuse_cluster
from workloads.common.topics import topic_settings

BROKER: Mapping[str, str] = {
    **settings.BROKER,
    # Few partitions: each one has to be led, fetched by its followers, and cleaned.
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    # The time limits of a commit, and of a silent member's session.
    "offsets.commit.timeout.ms": "3000",
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "200",
}
"""The settings of brokers that coordinate groups."""

CONSUMER: Mapping[str, str] = {
    **settings.CONSUMER,
    # Short, so that a silent member's session expires within a test.
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
    "max.poll.interval.ms": "5000",
    "auto.commit.interval.ms": "500",
}
"""The settings of consumers that may be members."""

ASKED = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
"""The APIs that members call again and again."""

CLIENTS: Mapping[str, Make] = {
    "librdkafka": confluent_group.GroupConfluentClient,
    "aiokafka": aio_group.GroupAioClient,
}
"""The clients, by the value of the option ``client``."""


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return a process with the client that the plan names."""
    make = CLIENTS[plan.options["client"]]
    topic = topic_settings(plan)
    return make(Settings.of(plan, connection, process, topic))


def refuse(plan: Plan) -> str | None:
    """Return why the brokers of this plan could not coordinate a group, or ``None``."""
    if (misfit := refuse_cluster(plan)) is not None:
        return misfit
    name = "offsets.topic.replication.factor"
    factor = plan.broker.get(name, "")  # unknown if the brokers are not the run's own
    if factor.isdecimal() and int(factor) > plan.brokers:
        return (
            f"--set broker.{name}={factor}: must be at most {plan.brokers}, the number of brokers"
        )
    return None
