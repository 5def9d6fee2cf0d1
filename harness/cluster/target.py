"""A target: an environment in which a plan can run; the folder of each target defines one."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.cluster.system import Say, System
from model.capabilities.cluster import Cluster
from model.plan import Plan
from nemesis.package import Package
from workloads.package import Workload


async def _nothing_to_prepare(plan: Plan, system: System, say: Say) -> None:
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
    kind_of: Callable[[Plan], type] | None = None
    """The class of a plan's cluster, a subclass of ``kind``, where it depends on the cluster."""
    any_system: bool = False
    """Does it run any system? ``make`` then receives the system, ``system=``.

    Otherwise it runs this project's broker only.
    """
    system: Callable[[Plan], System] | None = None
    """The system of its clusters, where a plan cannot choose one."""
    owns_cluster: bool = True
    """Does a run configure and change the whole cluster? Otherwise the cluster has other users."""
    complete: Callable[[Plan, Workload], Plan] = lambda plan, workload: plan
    """Completes a plan with what the cluster reports; raises ``ValueError`` for a wrong request."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """Default broker settings in addition to those of the system.

    Workload and plan may override them.
    """
    consumer: Mapping[str, str] = field(default_factory=dict)
    """Default consumer settings, which the plan may override."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """This target's options with defaults, and workload options that have other defaults here."""
    refusal: Callable[[], str | None] = lambda: None
    """Returns why the target is not available on this machine; ``None`` if it is.

    The command line prints the reason after the name of the target.
    """
    refuse: Callable[[Plan], str | None] = lambda plan: None
    """Returns why the target cannot run a plan; ``None`` if it can."""
    lacks: Callable[[Package, Plan], str | None] = lambda package, plan: None
    """Returns what a plan's cluster lacks for a fault package, where users can provide it."""
    withholds: Callable[[type, Plan], bool] = lambda capability, plan: False
    """Returns whether a plan's cluster lacks a capability that its class has."""
    is_virtual: bool = False
    """True if the target's time is simulated."""
    pace: float = 1.0
    """The default share of a workload's rate on this target."""
    prepare: Callable[[Plan, System, Say], Awaitable[None]] = _nothing_to_prepare
    """Does what may take minutes before a cluster starts, and reports its progress.

    The system has been prepared before.
    """

    def cluster_kind(self, plan: Plan) -> type:
        """Return the class of a plan's cluster."""
        return self.kind if self.kind_of is None else self.kind_of(plan)

    def offers(self, package: Package, plan: Plan) -> bool:
        """Does a plan's cluster have every capability that a fault package needs?"""
        return all(
            issubclass(self.cluster_kind(plan), need) and not self.withholds(need, plan)
            for need in package.needs
        )
