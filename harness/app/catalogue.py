"""Lists everything that a user can select by name: workloads, nemeses, targets and systems."""

import functools
from collections.abc import Callable

from harness.cluster.containers import target as containers
from harness.cluster.external import target as external
from harness.cluster.processes import target as processes
from harness.cluster.simulated import target as simulated
from harness.cluster.system import System
from harness.cluster.target import Target
from harness.systems import catalogue as systems
from harness.systems.catalogue import UnknownSystem as UnknownSystem
from model.capabilities.cluster import Cluster
from model.plan import Plan
from nemesis import catalogue
from nemesis.package import Package
from workloads import (
    asking,
    compacted,
    exactly_once,
    fencing,
    groups,
    idempotent,
    offsets,
    recreated,
    send_poll,
    transactions,
)
from workloads.package import Workload
from workloads.zookeeper import (
    barrier,
    children,
    counter,
    election,
    kv,
    lock,
    multi,
    queues,
    reads,
    register,
    sessions,
    watches,
)

SIMULATED = simulated.TARGET
"""The target of searches, which finds and shrinks what another target has shown."""

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (processes.TARGET, containers.TARGET, SIMULATED, external.TARGET)
}

NEMESES: dict[str, Package] = catalogue.NEMESES


def system_of(plan: Plan) -> System:
    """Return the system of a plan's cluster; raises :class:`UnknownSystem`."""
    target = TARGETS.get(plan.target)
    if target is not None and target.system is not None:
        return target.system(plan)
    return systems.system(plan.system)


def maker_of(plan: Plan) -> Callable[..., Cluster]:
    """Return what creates the cluster of a plan, in a folder and with a random generator."""
    target = TARGETS[plan.target]
    if target.any_system:
        return functools.partial(target.make, system=system_of(plan))
    return target.make


WORKLOADS: dict[str, Workload] = {
    **{
        module.WORKLOAD.name: asking.with_questions(module.WORKLOAD)
        for module in (
            *(idempotent, send_poll, offsets, groups),
            *(transactions, exactly_once, fencing, compacted, recreated),
        )
    },
    **{
        module.WORKLOAD.name: module.WORKLOAD
        for module in (
            *(register, kv, counter, lock, queues, election, barrier),
            *(watches, sessions, multi, children, reads),
        )
    },
}
