"""Lists everything that a user can select by name: workloads, nemeses and targets."""

from harness.cluster.containers import target as containers
from harness.cluster.processes import target as processes
from harness.cluster.simulated import target as simulated
from harness.cluster.target import Target
from nemesis import catalogue
from nemesis.package import Package
from workloads import (
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

SIMULATED = simulated.TARGET
"""The target of searches, which finds and shrinks what another target has shown."""

TARGETS: dict[str, Target] = {
    target.name: target for target in (processes.TARGET, containers.TARGET, SIMULATED)
}

NEMESES: dict[str, Package] = catalogue.NEMESES

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.name: module.WORKLOAD
    for module in (
        *(idempotent, send_poll, offsets, groups),
        *(transactions, exactly_once, fencing, compacted, recreated),
    )
}
