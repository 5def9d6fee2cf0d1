"""Lists everything that a user can select by name: workloads, nemeses and targets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cluster import links, mutants, settings
from harness.cluster.containers import container_cluster, engine
from harness.cluster.containers.container_cluster import Containers
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.simulated import simulated_cluster
from harness.cluster.simulated.simulated_cluster import Simulated
from model import options
from model.capabilities.cluster import Cluster
from model.plan import Plan
from nemesis import (
    admin,
    bit_flip,
    clock,
    disconnect,
    disk,
    failpoint,
    isolated_elections,
    kill,
    messages,
    packets,
    partition,
    pause,
    power,
    resource_limits,
    restart,
    session_expiry,
    slow_disk,
    slow_link,
    zookeeper,
)
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


async def _nothing_to_prepare(say: Callable[[str], None]) -> None:
    """Do nothing: most targets need no preparation."""


@dataclass(frozen=True, slots=True)
class Target:
    """An environment in which a plan can run."""

    name: str
    kind: type
    """The class of its clusters, which determines the capabilities that it offers."""
    make: Callable[..., Cluster]
    """Creates the cluster of a plan in a run's folder, with its own random generator, unstarted.

    For a virtual target it also receives the simulation as ``stage``.
    """
    broker: Mapping[str, str]
    """Default broker settings, which workload and plan may override."""
    mutants: Callable[[], Mapping[str, mutants.Mutant]]
    """The bugs that can be planted in its brokers."""
    consumer: Mapping[str, str] = field(default_factory=dict)
    """Default consumer settings, which the plan may override."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """This target's options with defaults, and workload options that have other defaults here."""
    refusal: Callable[[], str | None] = lambda: None
    """Returns why the target is not available on this machine; ``None`` if it is."""
    refuse: Callable[[Plan], str | None] = lambda plan: None
    """Returns why the target cannot run a plan; ``None`` if it can."""
    is_virtual: bool = False
    """True if the target's time is simulated."""
    pace: float = 1.0
    """The default share of a workload's rate on this target."""
    prepare: Callable[[Callable[[str], None]], Awaitable[None]] = _nothing_to_prepare
    """Does what may take minutes before a cluster starts, and reports its progress."""


PROCESSES = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    broker=settings.SCALED,
    mutants=mutants.catalogue,
    options={"client_listeners": []},
    refuse=lambda plan: links.refusal(plan.options["client_listeners"]),
)

CONTAINERS = Target(
    name="containers",
    kind=Containers,
    make=Containers,
    broker=settings.SCALED,
    mutants=mutants.catalogue,
    options=container_cluster.OPTIONS,
    refusal=engine.refusal,
    refuse=container_cluster.refuse,
    prepare=container_cluster.prepare,
)


def _not_simulated(plan: Plan) -> str | None:
    client = plan.options["client"]
    if client == "librdkafka":
        return (
            f"options: client={client} cannot be simulated, because librdkafka starts threads;"
            " use aiokafka"
        )
    return options.refusal(plan.options, simulated_cluster.LEAST)


SIMULATED = Target(
    name="simulated",
    kind=Simulated,
    make=Simulated,
    # Kafka's default waits: a short wait in real time takes many steps in a simulation.
    broker={**settings.SCALED, "replica.fetch.wait.max.ms": "500"},
    consumer={"fetch.wait.max.ms": "500"},
    mutants=mutants.catalogue,
    options={"client": "aiokafka", **simulated_cluster.OPTIONS},
    refuse=_not_simulated,
    is_virtual=True,
    pace=0.04,
)

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.name: module.WORKLOAD
    for module in (
        *(idempotent, send_poll, offsets, groups),
        *(transactions, exactly_once, fencing, compacted, recreated),
    )
}

NEMESES: dict[str, Package] = {
    module.PACKAGE.name: module.PACKAGE
    for module in (
        *(kill, pause, restart, partition, slow_link, zookeeper),
        *(admin, isolated_elections),
        *(disconnect, disk, resource_limits, packets),
        *(power, slow_disk, clock, session_expiry, messages),
        *(failpoint, bit_flip),
    )
}

TARGETS: dict[str, Target] = {target.name: target for target in (PROCESSES, CONTAINERS, SIMULATED)}
