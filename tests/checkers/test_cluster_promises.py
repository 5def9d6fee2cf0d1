"""The contract follows from the cluster's own facts where they are known."""

import pytest

from checkers.cluster_promises import transaction_version
from checkers.expectations import Contract
from model.cluster_facts import ClusterFacts, TopicFacts
from model.plan import Plan

UNCLEAN = "unclean.leader.election.enable"


def test_unclean_elections_of_the_cluster() -> None:
    """Unclean elections that the cluster allows are allowed, whatever the plan says of brokers."""
    cluster = ClusterFacts(broker={UNCLEAN: "true"})
    plan = Plan(broker={UNCLEAN: "false"})
    assert Contract.of(plan, cluster=cluster).unclean_elections
    assert Contract.of(None, cluster=cluster).unclean_elections
    clean = ClusterFacts(broker={UNCLEAN: "FALSE"})
    assert not Contract.of(Plan(broker={UNCLEAN: "true"}), cluster=clean).unclean_elections


def test_unclean_elections_of_a_topic() -> None:
    """One topic with unclean elections is enough."""
    topic = TopicFacts(partitions=1, replication_factor=3, settings={UNCLEAN: "true"})
    cluster = ClusterFacts(broker={UNCLEAN: "false"}, topics={"x": topic})
    assert Contract.of(Plan(), cluster=cluster).unclean_elections


def test_expectations_win() -> None:
    """The plan's expectations and the command line replace the cluster's facts."""
    cluster = ClusterFacts(broker={UNCLEAN: "true"})
    name = f"broker.{UNCLEAN}"
    expecting = Plan(expect={name: "false"})
    assert not Contract.of(expecting, cluster=cluster).unclean_elections
    assert not Contract.of(Plan(), {name: "false"}, cluster).unclean_elections
    assert Contract.of(expecting, {name: "true"}, cluster).unclean_elections


def test_unknown_facts_keep_the_plan() -> None:
    """Where the cluster reported nothing, or something that is not understood, the plan holds."""
    plan = Plan(broker={UNCLEAN: "true", "default.replication.factor": "1"})
    odd = ClusterFacts(
        broker={UNCLEAN: "maybe", "default.replication.factor": "-1", "log.retention.ms": "5"}
    )
    assert Contract.of(plan, cluster=ClusterFacts()) == Contract.of(plan)
    assert Contract.of(plan, cluster=odd) == Contract.of(plan)


def test_replication_factor_of_the_cluster() -> None:
    """The cluster's default replication factor holds unless the workload has its own."""
    cluster = ClusterFacts(broker={"default.replication.factor": "1"})
    plan = Plan(producer={"acks": "1"})
    assert not Contract.of(plan, cluster=cluster).loses
    own = Plan(producer={"acks": "1"}, options={"replication_factor": 3})
    assert Contract.of(own, cluster=cluster).loses


def test_zookeeper_timeouts_mean_nothing_to_kraft() -> None:
    """ZooKeeper's settings do not shorten the time for which a former leader is excused."""
    times = {"zookeeper.session.timeout.ms": "2000", "controller.socket.timeout.ms": "1500"}
    plan = Plan(broker=times)
    assert Contract.of(plan).hears_s == 7
    kraft = ClusterFacts(mode="kraft", broker={"controller.socket.timeout.ms": "10"})
    assert Contract.of(plan, cluster=kraft).hears_s == 15
    slower = ClusterFacts(mode="zookeeper", broker={"zookeeper.session.timeout.ms": "4000"})
    assert Contract.of(plan, cluster=slower).hears_s == 11


@pytest.mark.parametrize("level", [None, 1, 2])
def test_late_ends(level: int | None) -> None:
    """A late end is legal only if a producer goes on after an end without an answer.

    librdkafka uses version 1 of the protocol, also on a cluster that has version 2. ``raw`` uses 2.
    """
    features = {} if level is None else {"transaction.version": level}
    cluster = ClusterFacts(apis={26: (0, 4)}, features=features)
    assert transaction_version(cluster, "librdkafka") == 1
    raw = Plan(options={"doubt_ends": False, "client": "raw"})
    assert Contract.of(raw, cluster=cluster).late_ends is (level != 2)
    assert not Contract.of(Plan(), cluster=cluster).late_ends
    assert not Contract.of(Plan(options={"doubt_ends": True}), cluster=cluster).late_ends
    doubtful = Plan(options={"doubt_ends": False})
    assert Contract.of(doubtful, cluster=cluster).late_ends
    assert not Contract.of(doubtful).late_ends
    assert not Contract.of(doubtful, {"broker.transaction.version": "2"}, cluster).late_ends
