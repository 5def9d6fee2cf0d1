"""slow: what some brokers send to others arrives late; nothing is lost, nothing is reordered.

Followers lag by a round trip, so that whatever they learn late (the high watermark first of all)
they learn much later than usual.
"""

import asyncio
import math
import random
from typing import Any, Protocol

from model.roles import CanKill, CanPause, CanSlow, Cluster, HasRoles, NodeId
from nemesis import partition, proof
from nemesis import targets as aim
from nemesis.package import Applied, Broken, Drawn, Effect, Package, Shape

LATENCY_S = (0.02, 0.2)
"""From and to, when drawn."""


class Slowable(Cluster, CanSlow, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """One broker's words to its peers, or to ZooKeeper, or to both."""
    parties = [["brokers"], ["brokers", "zookeeper"]] if len(shape.brokers) > 1 else []
    options = {
        "latency_s": round(rng.uniform(*LATENCY_S), 3),
        "from": rng.choice([*parties, ["zookeeper"]]),
    }
    duration_s = rng.uniform(1.0, 2.5) * shape.session_timeout_s
    return Drawn("slow", duration_s, aim.draw_one(rng, shape), options)


async def apply(
    cluster: Slowable, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when the quickest probe takes at least as long as was asked, wherever one returns."""
    nodes = await aim.resolve(cluster, targets, rng)
    links = [
        link
        for node in nodes
        for link in partition.cuts("partition-one-way", [node], options, cluster.brokers)
    ]
    latency_s = options["latency_s"]
    for link in links:
        await cluster.slow(*link, latency_s)
    took = await proof.told(
        lambda: asyncio.gather(*(cluster.round_trip_s(*link) for link in links))
    )
    answered = [seconds for seconds in took if seconds is not None]
    quickest = min(answered, default=0.0)
    how = f"{len(answered)} of {len(links)} probes answered, none before {quickest * 1000:.0f} ms"
    proved = quickest >= latency_s > 0
    return Applied(nodes, Effect(proved, how), (Broken(links), latency_s))


async def heal(cluster: Slowable, applied: Applied) -> Effect:
    """Proved when every link to a node that stands was quicker than the latency.

    A machine that is busy may be late by itself, so that the quickest of several probes counts.
    """
    broken, latency_s = applied.undo
    await broken.mend(lambda link: cluster.quicken(*link))
    links = [link for link in broken.pieces if await aim.stands(cluster, _answers(cluster, link))]
    quickest = dict.fromkeys(links, math.inf)

    async def late() -> list[partition.Cut]:
        for link, took in zip(
            links,
            await asyncio.gather(*(cluster.round_trip_s(*link) for link in links)),
            strict=True,
        ):
            if took is not None:
                quickest[link] = min(quickest[link], took)
        return [link for link in links if quickest[link] >= latency_s]

    left = await proof.until(late, lambda late: not late)
    how = f"{len(links) - len(left)} of {len(broken.pieces)} links are quicker than the latency"
    if deaf := len(broken.pieces) - len(links):
        how += f", {deaf} lead to nodes that are down"
    return Effect(not left, how)


def _answers(cluster: Slowable, link: partition.Cut) -> NodeId:
    """The end of a link that can be asked; clients never answer."""
    source, target = link
    return target if target in cluster.nodes else source


PACKAGE = Package(
    name="slow",
    faults=("slow",),
    needs=(CanSlow, CanKill, CanPause, HasRoles),
    color="#e6c229",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
)
