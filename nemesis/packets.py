"""drop-packets: a share of what a broker sends and receives is lost below TCP.

TCP sends lost packets again, each time after a longer delay, so a connection loses nothing and
nothing is reordered: responses come in bursts, heartbeats come too late, and no side learns why.
"""

import asyncio
import dataclasses
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.network import CanCut, CanDropPackets
from model.capabilities.processes import CanKill, CanPause
from model.roles import CLIENTS, NodeId
from nemesis import targets as aim
from nemesis import verification
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options, Share
from nemesis.package import NOT_MEASURED, Applied, Cleanup, Effect, Fault, Package

SHARE = (0.1, 0.4)
"""The range from which the share of lost packets is drawn."""
OVERHEAD_S = 4.5


class PacketOptions(Options, frozen=True, kw_only=True):
    """The options of ``drop-packets``."""

    share: Share
    """The share of packets that are lost in each direction."""


class Leaky(Cluster, CanDropPackets, CanCut, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker, long enough for some retransmissions to be lost as well."""
    options = {"share": round(rng.uniform(*SHARE), 2)}
    duration_s = rng.uniform(1.0, 2.5) * shape.session_timeout_s
    one = aim.draw_one(rng, shape)
    return Drawn("drop-packets", duration_s, one, options, overhead_s=OVERHEAD_S)


async def strike(
    cluster: Leaky, fault: str, targets: Any, options: PacketOptions, rng: random.Random
) -> Applied:
    """Give every target that runs a rule that drops packets."""
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    if not running:
        return Applied(nodes, NOT_MEASURED, ())
    await asyncio.gather(*(cluster.drop_packets(node, options.share) for node in running))
    return Applied(tuple(running), NOT_MEASURED, tuple(running))


async def measure(cluster: Leaky, applied: Applied) -> Effect:
    """Proved when the rule of every target has counted packets that it dropped."""
    running: tuple[NodeId, ...] = applied.undo
    if not running:
        return Effect(False, "no target was running")

    async def counted() -> list[int | None]:
        # If there is no other traffic, these probes are the packets of which some are dropped.
        await asyncio.gather(*(cluster.is_cut(CLIENTS, node) for node in running))
        return await asyncio.gather(*map(cluster.packets_dropped, running))

    dropped = await verification.until(counted, lambda counts: all(counts))
    how = ", ".join(
        f"{node}: no rule" if count is None else f"{node}: {count} packets dropped"
        for node, count in zip(running, dropped, strict=True)
    )
    return Effect(all(dropped), how)


async def apply(
    cluster: Leaky, fault: str, targets: Any, options: PacketOptions, rng: random.Random
) -> Applied:
    """Drop packets, and measure that they are dropped."""
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, effect=await measure(cluster, applied))


async def restore(cluster: Leaky, applied: Applied) -> None:
    """Remove the rules."""
    await asyncio.gather(*map(cluster.pass_packets, applied.targets))


async def heal(cluster: Leaky, applied: Applied) -> Effect:
    """Remove the rules; proved when they are gone and running nodes answer."""
    await restore(cluster, applied)
    counts = await asyncio.gather(*map(cluster.packets_dropped, applied.targets))
    left = [n for n, count in zip(applied.targets, counts, strict=True) if count is not None]
    if left:
        return Effect(False, f"the rule is still there: {', '.join(left)}")
    if silent := await verification.silent(cluster, applied.targets):
        return Effect(False, f"the rule is gone, but not answering: {', '.join(silent)}")
    return Effect(True, f"{', '.join(applied.targets) or 'no node'}: the rule is gone")


PACKAGE = Package(
    name="packets",
    faults=(Fault("drop-packets", PacketOptions, state="losing packets"),),
    needs=(CanDropPackets, CanCut, CanKill, CanPause, HasRoles),
    color="#bcbd22",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
    strike=strike,
    measure=measure,
    restore=restore,
    cleanups=(Cleanup("the packet loss", node=lambda cluster, node: cluster.pass_packets(node)),),
)
