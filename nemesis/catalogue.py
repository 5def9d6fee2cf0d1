"""All fault packages, by name."""

from collections.abc import Iterator

from model.plan import Plan
from nemesis import (
    access,
    admin,
    bit_flip,
    certificates,
    clock,
    controllers,
    directories,
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
from nemesis.package import Fault, Package

NEMESES: dict[str, Package] = {
    module.PACKAGE.name: module.PACKAGE
    for module in (
        *(kill, pause, restart, partition, slow_link, zookeeper, controllers),
        *(admin, isolated_elections),
        *(disconnect, disk, resource_limits, packets),
        *(power, slow_disk, clock, session_expiry, messages),
        *(failpoint, bit_flip),
        *(access, certificates),
        *(directories,),
    )
}
"""The order is that of ``all``, on which the schedule of a seed depends."""


def faults_of(plan: Plan) -> Iterator[Fault]:
    """Yield the faults of a plan's schedule; before it is drawn, all faults of its nemeses."""
    scheduled = None if plan.schedule is None else {entry.fault for entry in plan.schedule}
    for name, package in NEMESES.items():
        for fault in package.faults:
            if name in plan.nemesis if scheduled is None else fault.name in scheduled:
                yield fault
