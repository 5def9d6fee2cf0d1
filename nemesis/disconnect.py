"""disconnect: a node loses all of its network, and later gets it back with the data in flight.

The node keeps running and is not notified: no connection is closed, just as a pulled cable closes
none. What TCP still holds when the network is back is delivered then, so this is the partition that
resumes, which a proxy cannot simulate. If the disconnection is shorter than the ZooKeeper session,
the broker is merely late; if it is longer, the broker returns as a stale leader. ZooKeeper is
disconnected rarely: unlike a killed or paused ZooKeeper, it continues to expire sessions while no
broker can reach it, and every broker returns to an expired session.
"""

import asyncio
import dataclasses
import random
from typing import Any, Literal, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.network import CanDisconnect, HasLinks
from model.capabilities.processes import HasProcesses
from model.roles import ZOOKEEPER, NodeId
from nemesis import targets as aim
from nemesis import verification
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import NOT_MEASURED, Applied, Cleanup, Effect, Fault, Package

ZOOKEEPERS = 0.1
"""The share of draws whose target is ZooKeeper."""
OVERHEAD_S = 3.5


class DisconnectOptions(Options, frozen=True, kw_only=True):
    """The options of ``disconnect``."""

    session: Literal["shorter", "longer"] | None = None
    """How the duration relates to a session: a note for readers of the schedule."""


class Disconnectable(Cluster, CanDisconnect, HasLinks, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one node; half of the time for longer than a session.

    The shorter durations leave room for the proof, which is measured while the node is already
    disconnected. ZooKeeper is disconnected while no other fault is active, because meanwhile no
    link to it can be proved cut.
    """
    longer = rng.random() < 0.5
    sessions = rng.uniform(1.2, 2.5) if longer else rng.uniform(0.1, 0.4)
    options = {"session": "longer" if longer else "shorter"}
    zookeeper = rng.random() < ZOOKEEPERS and ZOOKEEPER in shape.layout.zookeepers
    one = [ZOOKEEPER] if zookeeper else aim.draw_node(rng, shape)
    return Drawn(
        "disconnect",
        sessions * shape.session_timeout_s,
        one,
        options,
        alone=zookeeper,
        overhead_s=OVERHEAD_S,
    )


async def strike(
    cluster: Disconnectable,
    fault: str,
    targets: Any,
    options: DisconnectOptions,
    rng: random.Random,
) -> Applied:
    """Disconnect every target that runs."""
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.disconnect, running))
    return Applied(nodes, NOT_MEASURED, tuple(running))


async def measure(cluster: Disconnectable, applied: Applied) -> Effect:
    """Proved when each node is on no network and answers no probe that bypasses the proxies."""
    running: tuple[NodeId, ...] = applied.undo
    if not running:
        return Effect(False, "no target was running")
    off = await asyncio.gather(*map(cluster.is_disconnected, running))
    state = "disconnected, and answers no probe" if all(off) else "still reachable"
    how = f"{', '.join(running)}: {state}"
    return Effect(all(off), how)


async def apply(
    cluster: Disconnectable,
    fault: str,
    targets: Any,
    options: DisconnectOptions,
    rng: random.Random,
) -> Applied:
    """Disconnect the targets, and measure that they are disconnected."""
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, effect=await measure(cluster, applied))


async def restore(cluster: Disconnectable, applied: Applied) -> None:
    """Reconnect the targets."""
    await asyncio.gather(*map(cluster.reconnect, applied.targets))


async def heal(cluster: Disconnectable, applied: Applied) -> Effect:
    """Reconnect the targets; proved when they have a network, and answer unless down or paused."""
    await restore(cluster, applied)
    off = [node for node in applied.targets if await cluster.is_disconnected(node)]
    if off:
        return Effect(False, f"still without a network: {', '.join(off)}")
    if silent := await verification.silent(cluster, applied.targets):
        return Effect(False, f"on a network again, but not answering: {', '.join(silent)}")
    return Effect(True, f"{', '.join(applied.targets) or 'no node'} is on a network again")


PACKAGE = Package(
    name="disconnect",
    faults=(Fault("disconnect", DisconnectOptions, state="disconnected"),),
    needs=(CanDisconnect, HasLinks, HasProcesses, HasRoles),
    color="#17becf",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
    strike=strike,
    measure=measure,
    restore=restore,
    cleanups=(Cleanup("the network", node=lambda cluster, node: cluster.reconnect(node)),),
)
