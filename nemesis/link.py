"""slow: what some brokers send to others arrives late; nothing is lost, nothing is reordered.

Followers lag by a round trip, so that whatever they learn late (the high watermark first of all)
they learn much later than usual.
"""

import asyncio
import random
from typing import Any, Protocol

from model.roles import CanKill, CanPause, CanSlow, Cluster, HasRoles
from nemesis import partition, proof
from nemesis import targets as aim
from nemesis.package import Applied, Drawn, Effect, Package, Shape

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
    return Applied(nodes, Effect(proved, how), links)


async def heal(cluster: Slowable, applied: Applied) -> Effect:
    """Take the latency away."""
    for link in applied.undo:
        await cluster.quicken(*link)
    return Effect(True, f"{len(applied.undo)} links are as quick as before")


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
