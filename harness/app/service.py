"""Which kind of system a workload tests: brokers, or ZooKeeper without brokers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.app import catalogue
from harness.cluster.system import Service, System
from harness.cluster.target import Target
from harness.systems.catalogue import APACHE_ZOOKEEPER, OURS, ZOOKEEPER
from model.plan import Plan
from workloads.package import Workload

PLACES: Mapping[Service, str] = {"kafka": "partitions", "zookeeper": "znodes"}
"""What is read to its end at the end of a run."""


def of(workload: Any) -> Service:
    """Return the service of the workload of this name; an unknown one is one of Kafka's."""
    found = catalogue.WORKLOADS.get(workload) if isinstance(workload, str) else None
    return "kafka" if found is None else found.service


def fitted(plan: Plan, workload: Workload) -> Plan:
    """Return a plan whose cluster has brokers only if its workload needs them.

    This project's broker, the default, gives way to its ZooKeeper where that is tested.
    """
    if workload.service != "zookeeper":
        return plan
    system = ZOOKEEPER if plan.system == OURS else plan.system
    return msgspec.structs.replace(plan, system=system, brokers=0)


def mismatch(plan: Plan, workload: Workload) -> str:
    """Return why a workload does not run on a system."""
    if workload.service == "zookeeper":
        there = f"{ZOOKEEPER} or {APACHE_ZOOKEEPER}:VERSION"
        return f"--workload {plan.workload}: it tests ZooKeeper; use --system {there}"
    fitting = [each.name for each in catalogue.WORKLOADS.values() if each.service == "zookeeper"]
    return (
        f"--workload {plan.workload}: it needs brokers, which {plan.system} does not have;"
        f" use one of {', '.join(fitting)}"
    )


def broker_defaults(system: System, target: Target) -> dict[str, str]:
    """Return the broker settings that system and target choose, if there are brokers."""
    return {**system.broker, **target.broker} if system.service == "kafka" else {}
