"""kill: a broker is killed without warning (SIGKILL), and started again when the fault is over.

The machine keeps running, so everything that the broker has written survives, synced or not: a
correct broker loses nothing, even when all brokers die at once. Some brokers are started again
before their ZooKeeper session has expired, some after it.
"""

import asyncio
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanKill, HasProcesses
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import DOWN, Applied, Effect, Fault, Package


class Killable(Cluster, CanKill, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker in most cases, and sometimes a majority or all of them at once."""
    down_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    chance = rng.random()
    members = shape.layout.members
    if chance < 0.7 or len(members) < 2:
        return Drawn("kill", down_s, aim.draw_node(rng, shape))
    several = len(members) if chance < 0.85 else len(members) // 2 + 1
    return Drawn("kill", down_s, sorted(rng.sample(members, several)), alone=True)


async def apply(
    cluster: Killable, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Kill the targets; proved when each was waited for and its port refuses connections."""
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.kill, running))
    left = [node for node in nodes if await cluster.is_running(node)]
    if left or not running:
        return Applied(
            nodes, Effect(False, f"still up: {left}" if left else "no target was running")
        )
    how = f"{', '.join(running)}: the process is gone, its port refuses connections"
    return Applied(nodes, Effect(True, how))


async def heal(cluster: Killable, applied: Applied) -> Effect:
    """Start the targets that are down; proved when they run."""
    down = [node for node in applied.targets if not await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.start_node, down))
    left = [node for node in down if not await cluster.is_running(node)]
    return Effect(not left, f"{', '.join(down) or 'no node'} was started")


PACKAGE = Package(
    name="kill",
    faults=(Fault("kill", state=DOWN),),
    needs=(CanKill, HasProcesses, HasRoles),
    color="#d62728",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
)
