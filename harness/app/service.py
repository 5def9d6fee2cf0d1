"""Which kind of system a workload tests: brokers, or ZooKeeper without brokers."""

import msgspec

from harness.app import catalogue
from harness.cluster.system import System
from harness.cluster.target import Target
from harness.systems.catalogue import APACHE_ZOOKEEPER, OURS, ZOOKEEPER
from model.plan import Plan
from workloads.package import Workload


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
