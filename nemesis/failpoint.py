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
from nemesis import targets as aim
from nemesis.package import Applied, Effect, Package

WITHIN_S = 5.0
"""How long the fault waits for a code path at the point, unless ``within_s`` is given."""
LOOK_EVERY_S = 0.01


class Halting(Cluster, CanBreakAtPoint, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


async def apply(
    cluster: Halting, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Hold code at the point; proved when a code path waits there within ``within_s``.

    Option ``point``: its name. Raises ``ValueError`` for an unknown one.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    point = str(options["point"])
    for node in nodes:
        await cluster.halt(node, point)
    waiting: list[int] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(float(options.get("within_s", WITHIN_S))):
            while not any(waiting):
                await asyncio.sleep(LOOK_EVERY_S)
                waiting = [await cluster.halted(node, point) for node in nodes]
    how = f"{sum(waiting)} wait at {point} of {', '.join(nodes) or 'nobody'}"
    return Applied(nodes, Effect(any(waiting), how), point)


async def heal(cluster: Halting, applied: Applied) -> Effect:
    """Release the held code; proved when no code path waits there."""
    for node in applied.targets:
        await cluster.go_on(node, applied.undo)
    left = [node for node in applied.targets if await cluster.halted(node, applied.undo)]
    return Effect(not left, f"{', '.join(left) or 'nobody'} waits at {applied.undo}")


PACKAGE = Package(
    name="point",
    faults=("at-point",),
    needs=(CanBreakAtPoint, CanKill, CanPause, HasRoles),
    color="#393b79",
    lane="process",
    draw=None,
    apply=apply,
    heal=heal,
)
