"""Workloads of brokers and of ZooKeeper run on systems of their kind."""

import pytest

from harness.app import plan_resolution
from harness.app.refused import Refused
from model.plan import Plan


def test_a_broker_workload_needs_brokers() -> None:
    """A workload of brokers is refused on an ensemble, by its name."""
    plan = Plan(workload="idempotent", system="zookeeper", nemesis=("none",))
    with pytest.raises(Refused, match="it needs brokers, which zookeeper does not have"):
        plan_resolution.resolve(plan)


def test_a_cluster_of_servers_has_no_brokers_and_no_settings_of_brokers() -> None:
    """A standalone ensemble has no broker, and no setting of one; a given setting is refused."""
    made = plan_resolution.standalone(Plan(system="zookeeper"), {"num.partitions": "3"})
    assert (made.brokers, made.broker, made.options["zookeepers"]) == (0, {}, 3)
    asked = Plan(system="zookeeper", broker={"num.partitions": "3"})
    with pytest.raises(Refused, match=r"--set broker\.num\.partitions: zookeeper has no brokers"):
        plan_resolution.standalone(asked)
