"""Everything that has a name: workloads, nemeses, targets; listed here, because a human chooses."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cluster import containers, engine, links, mutants, settings, simulated
from harness.cluster.containers import Containers
from harness.cluster.processes import Processes
from harness.cluster.simulated import Simulated
from model import options
from model.plan import Plan
from model.roles import Cluster
from nemesis import (
    admin,
    apart,
    bit_flip,
    clock,
    disconnect,
    disk,
    kill,
    link,
    messages,
    packets,
    partition,
    pause,
    point,
    power,
    restart,
    session,
    slow_disk,
    squeeze,
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
    """Everything is there."""


@dataclass(frozen=True, slots=True)
class Target:
    """A world that a plan can run in."""

    name: str
    kind: type
    """Its class: says which capabilities it offers."""
    make: Callable[..., Cluster]
    """A cluster of a plan, in a run's folder, with a generator of its own; not yet started. A
    virtual one is also given the ``stage`` that it stands on."""
    broker: Mapping[str, str]
    """What its brokers are set to unless workload or plan say otherwise."""
    mutants: Callable[[], Mapping[str, mutants.Mutant]]
    """The planted bugs that its brokers know."""
    consumer: Mapping[str, str] = field(default_factory=dict)
    """What consumers are set to unless the plan says otherwise."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings with their defaults, and those of workloads that it has other defaults
    for."""
    refusal: Callable[[], str | None] = lambda: None
    """Why it cannot be had on this machine; ``None`` when it can."""
    refuse: Callable[[Plan], str | None] = lambda plan: None
    """Why it cannot run a plan; ``None`` when it can."""
    is_virtual: bool = False
    """Does its time pass in a simulated world?"""
    pace: float = 1.0
    """The share of a workload's rate that it is asked for by itself."""
    prepare: Callable[[Callable[[str], None]], Awaitable[None]] = _nothing_to_prepare
    """What may take minutes, before anything is started; tells of it while it does."""


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
    options=containers.OPTIONS,
    refusal=engine.refusal,
    refuse=containers.refuse,
    prepare=containers.prepare,
)


def _not_simulated(plan: Plan) -> str | None:
    client = plan.options["client"]
    if client == "librdkafka":
        return f"options: client={client} cannot be simulated: it has threads; leave it to aiokafka"
    return options.refusal(plan.options, simulated.LEAST)


SIMULATED = Target(
    name="simulated",
    kind=Simulated,
    make=Simulated,
    # Kafka's own waits: what real time makes short is long in steps.
    broker={**settings.SCALED, "replica.fetch.wait.max.ms": "500"},
    consumer={"fetch.wait.max.ms": "500"},
    mutants=mutants.catalogue,
    options={"client": "aiokafka", **simulated.OPTIONS},
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
        *(kill, pause, restart, partition, link, zookeeper),
        *(admin, apart),
        *(disconnect, disk, squeeze, packets),
        *(power, slow_disk, clock, session, messages),
        *(point, bit_flip),
    )
}

TARGETS: dict[str, Target] = {target.name: target for target in (PROCESSES, CONTAINERS, SIMULATED)}
