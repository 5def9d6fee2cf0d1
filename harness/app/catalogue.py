"""Everything that has a name: workloads, nemeses, targets; listed here, because a human chooses."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster import mutants, settings
from harness.cluster.processes import Processes
from model.plan import Plan
from model.roles import Cluster
from nemesis import kill, link, partition, pause, restart, zookeeper
from nemesis.package import Package
from workloads import idempotent
from workloads.package import Workload


@dataclass(frozen=True, slots=True)
class Target:
    """A world that a plan can run in."""

    name: str
    kind: type
    """Its class: says which capabilities it offers."""
    make: Callable[[Plan, Path, random.Random], Cluster]
    """A cluster of this plan, in a run's folder, not yet started."""
    broker: Mapping[str, str]
    """What its brokers are set to unless workload or plan say otherwise."""
    mutants: Callable[[], Mapping[str, mutants.Mutant]]
    """The planted bugs that its brokers know."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings with their defaults."""


PROCESSES = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    broker=settings.SCALED,
    mutants=mutants.catalogue,
    options={"client_listeners": []},
)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (idempotent.WORKLOAD,)}

NEMESES: dict[str, Package] = {
    module.PACKAGE.name: module.PACKAGE
    for module in (kill, pause, restart, partition, link, zookeeper)
}

TARGETS: dict[str, Target] = {target.name: target for target in (PROCESSES,)}
