"""disk-full: nothing more can be written to a broker's data directory.

The write that reaches the end of the disk is torn: part of a batch may be stored. A correct broker
may exit because of it, as Kafka does when its last log directory fails. It may neither acknowledge
what it has not stored, nor serve the torn part after it has been started again.
"""

import asyncio
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanFailDirectory, CanFillDisk
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis import verification
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Cleanup, Effect, Fault, Package

FULL_BYTES = 4096
"""A disk with at most one page of free space counts as full."""
SETTLE_S = 1.0
"""How long a broker may take to exit because of a write that failed just before the heal."""
OVERHEAD_S = 4.5
"""The time for proof and heal, mostly that of starting the broker."""


class Fillable(Cluster, CanFillDisk, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker, for less than a session: it writes all the time and soon hits the limit."""
    duration_s = rng.uniform(0.2, 1.0) * shape.session_timeout_s
    return Drawn("disk-full", duration_s, aim.draw_one(rng, shape), overhead_s=OVERHEAD_S)


async def apply(
    cluster: Fillable, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Fill the disk; proved when its file system is full, and was not full before.

    Raises ``ValueError`` if a second disk would be full: a cluster need not survive that.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    if not running:
        return Applied(nodes, Effect(False, "no target was running"))
    if len(running) > 1:
        raise ValueError(f"one full disk at a time, not those of {', '.join(running)}")
    [node] = running
    for other in cluster.layout.members:
        if other != node and await cluster.disk_free_bytes(other) <= FULL_BYTES:
            raise ValueError(f"one full disk at a time: that of {other} is full")
    before = await cluster.disk_free_bytes(node)

    async def filled() -> int:
        # A broker that deletes a segment meanwhile frees space again.
        await cluster.fill_disk(node)
        return await cluster.disk_free_bytes(node)

    left = await verification.until(filled, lambda free: free <= FULL_BYTES)
    how = f"{node}: {left} bytes left of {before} that were free"
    return Applied((node,), Effect(left <= FULL_BYTES < before, how), before)


async def heal(cluster: Fillable, applied: Applied) -> Effect:
    """Free the disk, and start the broker if it is down.

    A broker with several data directories may have given one of them up, and uses it again only
    after a restart; it is restarted, whether it has or not. Proved when the broker runs and at
    least half of the former free space is back. A broker that another fault keeps down is not
    started.
    """
    if applied.undo is None:
        return Effect(True, "no disk was filled")
    [node], before = applied.targets, applied.undo
    await cluster.free_disk(node)
    if node in applied.kept_down:
        free = await cluster.disk_free_bytes(node)
        return Effect(free * 2 >= before, f"another fault keeps {node} down, {free} bytes are free")
    several = isinstance(cluster, CanFailDirectory) and cluster.directory_count(node) > 1
    state = await run_again(cluster, node, restarts=several)
    running, free = await cluster.is_running(node), await cluster.disk_free_bytes(node)
    return Effect(running and free * 2 >= before, f"{node} {state}, {free} bytes are free")


async def run_again(cluster: CanKill, node: NodeId, *, restarts: bool) -> str:
    """Start a broker that has ended or is about to; with ``restarts`` also one that runs on.

    Returns what was done, or that the broker does not run, in words.
    """
    if await cluster.is_running(node):
        await asyncio.sleep(SETTLE_S)
    done = "runs"
    if await cluster.is_running(node) and restarts:
        await cluster.kill(node)
        done = "was killed, and started again"
    elif not await cluster.is_running(node):
        done = "was started"
    if not await cluster.is_running(node):
        await cluster.start_node(node)
    return done if await cluster.is_running(node) else "does not run"


PACKAGE = Package(
    name="disk",
    faults=(Fault("disk-full", targets=aim.ONE_BROKER, needs_small_disk=True),),
    needs=(CanFillDisk, CanKill, CanPause, HasRoles),
    color="#7f7f7f",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the full disk", node=lambda cluster, node: cluster.free_disk(node)),),
    weight=0.5,
)
