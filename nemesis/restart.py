"""restart: brokers are stopped cleanly (SIGTERM, controlled shutdown) and started again.

``restart`` takes one broker down for a moment. ``restart-rolling`` restarts one broker after
another, as an operator does: the next one when all replicas are in sync again, or at the latest
after a timeout.
"""

import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanRestart, HasProcesses
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import DOWN, Applied, Effect, Fault, Package

WHOLE_TIMEOUT_S = 4.0
"""How long a rolling restart waits for the cluster to recover before the next broker."""

ROLLING_S = 3.0
"""How long one broker of a rolling restart usually takes."""


class Restartable(Cluster, CanRestart, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker in most cases, and sometimes all in a row."""
    members = shape.layout.members
    if rng.random() < 0.25 and len(members) > 1:
        order = rng.sample(members, len(members))
        return Drawn("restart-rolling", 0.0, order, alone=True, overhead_s=ROLLING_S * len(order))
    one = aim.draw_node(rng, shape)
    return Drawn("restart", rng.uniform(0.1, 0.8) * shape.session_timeout_s, one)


async def apply(
    cluster: Restartable, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Stop the brokers; proved when each one exited by itself with status 0."""
    nodes = await aim.resolve(cluster, targets, rng)
    statuses: dict[str, int] = {}
    for node in nodes:
        if not await cluster.is_running(node):
            continue
        statuses[node] = await cluster.stop_node(node)
        if fault == "restart-rolling":
            await cluster.start_node(node)
            await cluster.recover(WHOLE_TIMEOUT_S)
    clean = bool(statuses) and not any(statuses.values())
    how = ", ".join(f"{node}: exit status {status}" for node, status in statuses.items())
    return Applied(nodes, Effect(clean, how or "no target was running"))


async def heal(cluster: Restartable, applied: Applied) -> Effect:
    """Start the brokers that are down; proved when they run."""
    down = [node for node in applied.targets if not await cluster.is_running(node)]
    for node in down:
        await cluster.start_node(node)
    left = [node for node in down if not await cluster.is_running(node)]
    return Effect(not left, f"{', '.join(down) or 'no node'} was started")


PACKAGE = Package(
    name="restart",
    faults=(Fault("restart", state=DOWN), Fault("restart-rolling", state=DOWN)),
    needs=(CanRestart, HasProcesses, HasRoles),
    color="#1f77b4",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
)
