"""at-point: a broker is held at a named point of its code, and continues when the fault heals.

Only the code paths that reach the point are held; everything else in the broker continues. The
fault is for schedules that are written by hand and is never drawn, because another fault or
operation has to bring the broker to the point.
"""

import asyncio
import contextlib
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanBreakAtPoint, CanKill, CanPause
from model.text import brief
from nemesis import targets as aim
from nemesis.options import Options, Seconds
from nemesis.package import Applied, Cleanup, Effect, Environment, Fault, Package, has_brokers

WITHIN_S = 5.0
"""How long the fault waits for a code path at the point by default."""
LOOK_EVERY_S = 0.01


class PointOptions(Options, frozen=True, kw_only=True):
    """The options of ``at-point``."""

    point: str
    """The name of the point."""
    within_s: Seconds = WITHIN_S
    """How long the fault waits for a code path at the point."""


class Halting(Cluster, CanBreakAtPoint, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


async def apply(
    cluster: Halting, fault: str, targets: Any, options: PointOptions, rng: random.Random
) -> Applied:
    """Hold code at the point; proved when a code path waits there within ``within_s``."""
    nodes = await aim.resolve(cluster, targets, rng)
    point = options.point
    for node in nodes:
        await cluster.halt(node, point)
    waiting: list[int] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(options.within_s):
            while not any(waiting):
                await asyncio.sleep(LOOK_EVERY_S)
                waiting = [await cluster.halted(node, point) for node in nodes]
    how = f"{sum(waiting)} tasks wait at {point} of {', '.join(nodes) or 'no node'}"
    return Applied(nodes, Effect(any(waiting), how), point)


async def heal(cluster: Halting, applied: Applied) -> Effect:
    """Release the held code; proved when no code path waits there."""
    for node in applied.targets:
        await cluster.go_on(node, applied.undo)
    left = [node for node in applied.targets if await cluster.halted(node, applied.undo)]
    return Effect(not left, f"{', '.join(left) or 'no node'} waits at {applied.undo}")


def _unknown_point(options: PointOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse a point that the cluster's code does not have."""
    points = environment.kind.breakpoints()
    if options.point in points:
        return None
    return f"point = {brief(options.point)}: must be {' or '.join(points)}"


PACKAGE = Package(
    name="point",
    suits=has_brokers,
    faults=(Fault("at-point", PointOptions, aim.BROKERS, _unknown_point),),
    needs=(CanBreakAtPoint, CanKill, CanPause, HasRoles),
    color="#393b79",
    lane="process",
    draw=None,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the breakpoints", cluster=lambda cluster: cluster.all_go_on()),),
)
