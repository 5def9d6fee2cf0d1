"""slow: what some brokers send arrives late; nothing is lost, and nothing is reordered.

Followers lag by a round trip. Everything that they receive with a delay, first of all the high
watermark, reaches them much later than usual.
"""

import asyncio
import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.network import CanCut, CanSlow
from model.capabilities.processes import HasProcesses
from model.layout import Layout
from model.link_faults import LinkFaults
from model.roles import NodeId
from nemesis import overlap, partition, verification
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options, SomeSeconds
from nemesis.package import NOT_MEASURED, Applied, Effect, Fault, Package, UndoList

LATENCY_S = (0.02, 0.2)
"""The range from which the latency is drawn."""


class SlowOptions(Options, frozen=True, kw_only=True, rename={"parties": "from"}):
    """The options of ``slow``."""

    latency_s: SomeSeconds
    """How much later everything that the targets send arrives."""
    parties: partition.Parties = msgspec.field(default_factory=lambda: ["brokers"])
    """The receivers."""


class Slowable(Cluster, CanSlow, CanCut, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker whose messages to its peers, to ZooKeeper, or to both are slow."""
    options = {
        "latency_s": round(rng.uniform(*LATENCY_S), 3),
        "from": rng.choice(_parties(shape.layout)),
    }
    duration_s = rng.uniform(1.0, 2.5) * shape.session_timeout_s
    return Drawn("slow", duration_s, aim.draw_one(rng, shape), options)


def _parties(layout: Layout) -> list[list[str]]:
    """Return the parties of which one choice is drawn."""
    if not layout.brokers:
        between = [["zookeeper"], ["zookeeper", "clients"]] if layout.is_ensemble else []
        return [["clients"], *between]
    if not layout.keepers:
        return [["brokers"]]
    keepers = "controllers" if layout.is_kraft else "zookeeper"
    several = len(layout.brokers) > 1
    return [*([["brokers"], ["brokers", keepers]] if several else []), [keepers]]


async def strike(
    cluster: Slowable, fault: str, targets: Any, options: SlowOptions, rng: random.Random
) -> Applied:
    """Slow the links."""
    nodes = await aim.resolve(cluster, targets, rng)
    links = [
        link
        for node in nodes
        for link in partition.one_way([node], options.parties, cluster.layout)
        if cluster.has_link(*link)
    ]
    latency_s = options.latency_s
    for link in links:
        await cluster.slow(*link, latency_s)
    return Applied(nodes, NOT_MEASURED, (UndoList(links), latency_s))


async def measure(cluster: Slowable, applied: Applied) -> Effect:
    """Proved when each answered probe takes at least as long as the faults on its link demand.

    That is the requested latency or, if it is more, what all faults on the link add together.
    """
    broken, latency_s = applied.undo
    links, hidden = overlap.split(cluster, broken.resources, lambda faults: faults.is_silent)
    due_s = [max(latency_s, cluster.link_faults(*link).slowness_s) for link in links]
    took = await verification.until_answered(
        lambda: asyncio.gather(*(cluster.round_trip_s(*link) for link in links))
    )
    answered = [seconds for seconds in took if seconds is not None]
    quickest = min(answered, default=0.0)
    how = (
        f"{len(answered)} of {len(broken.resources)} probes answered, none before"
        f" {quickest * 1000:.0f} ms"
    )
    if hidden:
        how += f", {len(hidden)} links are cut by other faults"
    late = all(
        seconds is None or seconds >= least for seconds, least in zip(took, due_s, strict=True)
    )
    return Effect(bool(answered) and late and latency_s > 0, how)


async def apply(
    cluster: Slowable, fault: str, targets: Any, options: SlowOptions, rng: random.Random
) -> Applied:
    """Slow the links, and measure that they are slow."""
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, effect=await measure(cluster, applied))


async def restore(cluster: Slowable, applied: Applied) -> None:
    """Remove the latency of this fault from the links."""
    broken, latency_s = applied.undo
    await broken.restore(lambda link: cluster.quicken(link[0], link[1], latency_s))


async def heal(cluster: Slowable, applied: Applied) -> Effect:
    """Proved when every link to a running node has answered a probe without this fault's delay.

    Such a probe is quicker than this fault's latency plus that of the other faults. Links that
    other faults keep from being measured do not count. A busy machine may delay a probe by itself,
    so the quickest of several probes counts.
    """
    await restore(cluster, applied)
    broken, latency_s = applied.undo
    links: Sequence[overlap.Link] = ()
    hidden: Sequence[overlap.Link] = ()
    quickest = dict.fromkeys(broken.resources, math.inf)

    async def late() -> list[overlap.Link]:
        nonlocal links, hidden
        standing = [
            link for link in broken.resources if await aim.stands(cluster, _answers(cluster, link))
        ]
        links, hidden = overlap.split(cluster, standing, _hides)
        due_s = {link: latency_s + cluster.link_faults(*link).slowness_s for link in links}
        for link, took in zip(
            links,
            await asyncio.gather(*(cluster.round_trip_s(*link) for link in links)),
            strict=True,
        ):
            if took is not None and took < due_s[link]:
                quickest[link] = min(quickest[link], took)
        return [link for link in links if quickest[link] == math.inf]

    left = await verification.until(late, lambda late: not late)
    how = f"{len(links) - len(left)} of {len(broken.resources)} links are quicker than the latency"
    if hidden:
        how += f", {len(hidden)} are cut, lossy or slow by other faults"
    if deaf := len(broken.resources) - len(links) - len(hidden):
        how += f", {deaf} lead to nodes that are down"
    return Effect(not left, how)


def _hides(faults: LinkFaults) -> bool:
    """Do other faults make it impossible to measure that a link is no longer slow?"""
    return faults.is_silent or faults.lossy or faults.slowness_s > overlap.TOO_SLOW_S


def _answers(cluster: Slowable, link: partition.Cut) -> NodeId:
    """Return the end of a link that can answer a probe; clients never do."""
    source, target = link
    return target if target in cluster.nodes else source


PACKAGE = Package(
    name="slow",
    faults=(Fault("slow", SlowOptions, refuse=partition.unknown_party),),
    needs=(CanSlow, CanCut, HasProcesses, HasRoles),
    color="#e6c229",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
    strike=strike,
    measure=measure,
    restore=restore,
    cleanups=(partition.LINKS,),
)
