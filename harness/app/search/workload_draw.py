"""Draws the workload of a run, unless the user names one.

Every workload that tests the plan's system is equally likely. A workload that the pinned fields do
not fit, such as an option that only another workload has, gives way to the next one.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from harness.app import catalogue, plan_resolution
from harness.app.refused import Refused
from harness.cluster.system import Service
from harness.systems import catalogue as systems
from harness.systems.catalogue import OURS, ZOOKEEPER, UnknownSystem
from model.plan import Plan

MIXED = "mixed"
"""Stands for the workload in the name of a search's folder, if each run draws its own."""


def plan_of(
    seed: int, pinned: Mapping[str, Any], draw: Callable[[Mapping[str, Any]], Plan]
) -> Plan:
    """Return the plan that ``draw`` returns for the pinned fields and a workload of this seed.

    Raises :class:`~harness.app.refused.Refused` if no workload fits the pinned fields.
    """
    if "workload" in pinned:
        return draw(pinned)
    first: Refused | None = None
    for name in _order(seed, pinned):
        try:
            return draw({**pinned, "workload": name})
        except Refused as error:
            first = first or error
    default = Plan().workload
    if catalogue.WORKLOADS[default].service == service_of(pinned):
        return draw({**pinned, "workload": default})  # the refusal does not depend on the seed
    assert first is not None, "each kind of system has workloads"
    raise first


def service_of(pinned: Mapping[str, Any]) -> Service:
    """Return which kind of system the pinned fields name.

    Bugs that can only be planted in ZooKeeper name it, too. Raises
    :class:`~harness.app.refused.Refused` for an unknown system.
    """
    plan = plan_resolution.plan_of(pinned)
    if "system" not in pinned and plan.mutants:
        ours, keepers = (systems.system(name).mutants() for name in (OURS, ZOOKEEPER))
        if all(name in keepers and name not in ours for name in plan.mutants):
            return "zookeeper"
    try:
        return catalogue.system_of(plan).service
    except UnknownSystem as error:
        raise Refused(str(error)) from None


def named(pinned: Mapping[str, Any]) -> str:
    """Return the workload of all runs, or :data:`MIXED`."""
    return str(pinned.get("workload", MIXED))


def _order(seed: int, pinned: Mapping[str, Any]) -> list[str]:
    """Return the workloads of the plan's system; the first one that fits is taken."""
    service = service_of(pinned)
    fitting = [name for name, each in catalogue.WORKLOADS.items() if each.service == service]
    return random.Random(f"{seed}:search:workload").sample(fitting, len(fitting))
