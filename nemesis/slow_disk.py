"""slow-disk: every operation on a broker's disk takes longer, and the broker waits for it.

Nothing fails. Appends, reads and syncs that took microseconds take milliseconds, in the middle of
whatever the broker was doing: heartbeats are late, followers fall behind, and a periodic flush
delays every request.
"""

import asyncio
import math
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanSlowDisk
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options, SomeSeconds
from nemesis.package import Applied, Cleanup, Effect, Fault, Package

SECONDS = (0.0005, 0.01)
"""The range from which the delay is drawn."""
OVERHEAD_S = 2.5
TRIES = 5
"""How many operations are measured: at least one of them does not wait for others."""


class DiskOptions(Options, frozen=True, kw_only=True):
    """The options of ``slow-disk``."""

    seconds: SomeSeconds
    """How much longer each operation takes."""


class Sluggish(Cluster, CanSlowDisk, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker, for about the length of a session."""
    low, high = SECONDS
    options = {"seconds": round(low * (high / low) ** rng.random(), 4)}
    duration_s = rng.uniform(0.5, 2.5) * shape.session_timeout_s
    one = aim.draw_node(rng, shape)
    return Drawn("slow-disk", duration_s, one, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Sluggish, fault: str, targets: Any, options: DiskOptions, rng: random.Random
) -> Applied:
    """Slow the disks; proved when an operation takes as long as requested, and took less before."""
    nodes = await aim.resolve(cluster, targets, rng)
    seconds = options.seconds
    before = await asyncio.gather(*(_at_best_s(cluster, node, seconds) for node in nodes))
    for node in nodes:
        await cluster.slow_disk(node, seconds)
    now = await asyncio.gather(*map(cluster.disk_takes_s, nodes))
    proved = bool(nodes) and max(before, default=0.0) < seconds <= min(now, default=0.0)
    how = ", ".join(
        f"{node}: an operation takes {was * 1000:.3f} ms, then {took * 1000:.3f} ms"
        for node, was, took in zip(nodes, before, now, strict=True)
    )
    return Applied(nodes, Effect(proved, how or "there was no target"), seconds)


async def _at_best_s(cluster: Sluggish, node: NodeId, enough_s: float) -> float:
    """Return how long an operation takes by itself: of several, the first below ``enough_s``."""
    took_s = math.inf
    for _ in range(TRIES):
        took_s = min(took_s, await cluster.disk_takes_s(node))
        if took_s < enough_s:
            break
    return took_s


async def heal(cluster: Sluggish, applied: Applied) -> Effect:
    """Restore the disks; proved when an operation takes less than the fault's delay."""
    await asyncio.gather(*map(cluster.quicken_disk, applied.targets))
    took = await asyncio.gather(
        *(_at_best_s(cluster, node, applied.undo) for node in applied.targets)
    )
    slowest = max(took, default=0.0)
    return Effect(slowest < applied.undo, f"an operation takes at most {slowest * 1000:.3f} ms")


PACKAGE = Package(
    name="slow-disk",
    faults=(Fault("slow-disk", DiskOptions, state="on a slow disk"),),
    needs=(CanSlowDisk, CanKill, CanPause, HasRoles),
    color="#c49c94",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the slow disk", node=lambda cluster, node: cluster.quicken_disk(node)),),
    weight=0.5,
)
