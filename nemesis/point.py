"""at-point: a broker is held where its code says that an order matters, and goes on when it heals.

Only what has come to the point stands still, all else goes on. For schedules that are written by
hand: something has to bring the broker to the point, so that none is drawn.
"""

import asyncio
import contextlib
import random
from typing import Any, Protocol

from model.roles import CanHalt, CanKill, CanPause, Cluster, HasRoles
from nemesis import targets as aim
from nemesis.package import Applied, Effect, Package

WITHIN_S = 5.0
"""How long somebody is waited for at the point, unless the option ``within_s`` says otherwise."""
LOOK_EVERY_S = 0.01


class Halting(Cluster, CanHalt, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


async def apply(
    cluster: Halting, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when a path of the code waits at the point, within ``within_s``.

    Option ``point``: its name; ``ValueError`` for another.
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
    """Let it go on; proved when nobody waits there."""
    for node in applied.targets:
        await cluster.go_on(node, applied.undo)
    left = [node for node in applied.targets if await cluster.halted(node, applied.undo)]
    return Effect(not left, f"{', '.join(left) or 'nobody'} waits at {applied.undo}")


PACKAGE = Package(
    name="point",
    faults=("at-point",),
    needs=(CanHalt, CanKill, CanPause, HasRoles),
    color="#393b79",
    lane="process",
    draw=None,
    apply=apply,
    heal=heal,
)
