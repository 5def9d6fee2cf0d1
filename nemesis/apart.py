"""elect-apart: leaders are elected in turn among brokers that do not hear each other.

Each is in sync when it is elected, or was a moment ago. It takes what clients send, and nobody
follows it; the next one knows nothing of it, takes other records, and so on. When they hear each
other again several logs go apart at different places, in epochs that others have never seen.
Nothing of it was acknowledged but what all in sync had.
"""

import asyncio
import itertools
import random
from typing import Any, Protocol

from model.roles import (
    CanAdminister,
    CanCut,
    CanKill,
    CanPause,
    CanRefuse,
    Cluster,
    HasRoles,
)
from nemesis import admin, partition
from nemesis import targets as aim
from nemesis.package import Applied, Drawn, Effect, Package, Shape

TIMES = (2, 4)
"""How many elections when the links are cut, from and to."""
GAP_S = (0.3, 1.2)
"""How long a leader leads: clients have to find it, and it must not find out that it is alone."""
OVERHEAD_S = 4.0


class Parted(Cluster, CanAdminister, CanCut, CanRefuse, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def room(shape: Shape) -> bool:
    """It takes three: who led before, and two who do not know of each other."""
    return min(len(shape.brokers), shape.replicas) > 2 and bool(shape.keys)


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """Some partitions, one election before the links are cut and some behind that."""
    keys = rng.sample(shape.keys, rng.randint(1, len(shape.keys)))
    times, gap_s = rng.randint(*TIMES), round(rng.uniform(*GAP_S), 3)
    options = {"keys": keys, "times": times, "gap_s": gap_s}
    return Drawn(
        "elect-apart",
        rng.uniform(0.0, 1.0),
        aim.draw_one(rng, shape),
        options,
        overhead_s=OVERHEAD_S + times * gap_s,
    )


async def apply(
    cluster: Parted, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when there was an election before the links were cut, as that of ``elect-leaders``
    is, and they are proved to be. Who controls still reaches everybody, for he gives the orders.

    Options: ``keys``, the partitions, as of ``elect-leaders``; ``times``, how many elections follow
    when the links are cut; ``gap_s``, how long after one another.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    first = await admin.elected(cluster, nodes, options, rng)
    controller = await cluster.controller()
    apart = [broker for broker in cluster.brokers if broker != controller]
    lost = list(itertools.permutations(apart, 2))
    for cut in lost:
        await cluster.cut(*cut)
    told = [first]
    for _ in range(int(options.get("times", 1))):
        await asyncio.sleep(float(options.get("gap_s", GAP_S[1])))
        wishes = await admin.able(cluster, options, rng)
        shifted = await admin.shift(cluster, wishes)
        told.append([f"{key} by {wishes[key]}" for key in shifted.led])
    applied = partition.applied_cuts(nodes, lost)
    measured = await partition.measure(cluster, applied)
    how = "; then ".join(", ".join(led) or "nobody else leads" for led in told)
    effect = Effect(bool(first) and measured.proved, f"{how}; {measured.how}")
    return Applied(nodes, effect, applied.undo)


PACKAGE = Package(
    name="apart",
    faults=("elect-apart",),
    needs=(CanAdminister, CanCut, CanRefuse, CanKill, CanPause, HasRoles),
    color="#e7969c",
    lane="network",
    draw=draw,
    apply=apply,
    heal=partition.heal,
    mend=partition.mend,
    room=room,
)
