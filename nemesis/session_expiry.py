"""expire-session: ZooKeeper ends a broker's session while the broker is healthy and connected.

The broker's znode is gone at once; the broker learns of it when it next sends a request. Until then
it still acts as a leader or controller, although it is neither. Then it registers again like a
broker that has just started, but with all of its former state in memory.
"""

import asyncio
import contextlib
import random
from collections.abc import Mapping
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import CanExpire, HasHealth, HasRoles
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Effect, Fault, Package, has_brokers

RETURN_S = 5.0
"""How long a broker may take to register again."""
COME_S = 1.5
"""How long the fault waits for a target without a registration to register first."""
LOOK_EVERY_S = 0.05
OVERHEAD_S = 2.0


class Expirable(Cluster, CanExpire, CanKill, CanPause, HasRoles, HasHealth, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker; the fault itself takes no time.

    No other fault is active, because a broker that is cut off may have no session.
    """
    one = aim.draw_one(rng, shape)
    return Drawn("expire-session", 0.0, one, alone=True, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Expirable, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """End the sessions; proved when ZooKeeper has ended them and the registrations are gone.

    A target that runs without a registration, for example after ZooKeeper was away, has ``COME_S``
    to register first.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    before = {node: await cluster.registration(node) for node in nodes}
    late = [node for node in nodes if before[node] is None and await aim.stands(cluster, node)]
    if late:
        await _until_registered(cluster, dict.fromkeys(late), COME_S)
        before = {node: await cluster.registration(node) for node in nodes}
    over = [node for node in nodes if await cluster.expire_session(node)]
    left = [node for node in over if await cluster.registration(node) == before[node]]
    proved = bool(nodes) and len(over) == len(nodes) and not left
    how = ", ".join(
        f"{node}: the session of registration {before[node]} is "
        f"{'over' if node in over and node not in left else 'unchanged'}"
        for node in nodes
    )
    return Applied(nodes, Effect(proved, how or "there was no target"), before)


async def heal(cluster: Expirable, applied: Applied) -> Effect:
    """Wait; there is nothing to restore. Proved when each running target has registered again."""
    before: dict[NodeId, int | None] = applied.undo
    standing = {node: old for node, old in before.items() if await aim.stands(cluster, node)}
    missing = await _until_registered(cluster, standing, RETURN_S)
    if missing:
        return Effect(False, f"not registered again: {', '.join(missing)}")
    return Effect(True, f"registered again: {', '.join(before) or 'no node'}")


async def _until_registered(
    cluster: Expirable, before: Mapping[NodeId, int | None], within_s: float
) -> list[NodeId]:
    """Wait for registrations other than these; return the nodes that have none at the end."""
    missing = list(before)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while missing:
                missing = [
                    node
                    for node in missing
                    if await cluster.registration(node) in (None, before[node])
                ]
                await asyncio.sleep(LOOK_EVERY_S if missing else 0)
    return missing


PACKAGE = Package(
    name="session",
    suits=has_brokers,
    faults=(Fault("expire-session", targets=aim.BROKERS),),
    needs=(CanExpire, CanKill, CanPause, HasRoles, HasHealth),
    color="#aec7e8",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    weight=0.5,
)
