"""elect-apart: brokers that cannot reach each other are elected leader one after another.

Each of them is in the ISR when it is elected, or was a moment ago. It accepts what clients send,
and no follower fetches it; the next leader does not have these records, accepts others, and so on.
When the brokers reach each other again, their logs have diverged at several offsets, in epochs that
the other brokers have never seen. Only records that all in-sync replicas had were acknowledged.
"""

import asyncio
import itertools
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import CanAdminister, HasRoles
from model.capabilities.network import CanCut, CanRefuse
from model.capabilities.processes import HasProcesses
from nemesis import admin, partition
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.package import Applied, Effect, Fault, Package, has_brokers

TIMES = (2, 4)
"""The range of the number of elections after the links are cut."""
GAP_S = (0.3, 1.2)
"""How long each leader leads.

It is long enough for clients to find the leader, and too short for the leader to notice that its
followers are gone.
"""
OVERHEAD_S = 4.0


class Parted(Cluster, CanAdminister, CanCut, CanRefuse, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def room(shape: ClusterShape) -> bool:
    """Are there three brokers and replicas: a first leader, and two unaware of each other?"""
    return min(len(shape.brokers), shape.replicas) > 2 and bool(shape.keys)


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw some partitions, for one election before the links are cut and several after it."""
    keys = rng.sample(shape.keys, rng.randint(1, len(shape.keys)))
    times, gap_s = rng.randint(*TIMES), round(rng.uniform(*GAP_S), 3)
    options = {"keys": keys, "times": times, "gap_s": gap_s}
    return Drawn(
        "elect-apart",
        rng.uniform(0.0, 1.0),
        aim.draw_broker(rng, shape),
        options,
        overhead_s=OVERHEAD_S + times * gap_s,
    )


async def apply(
    cluster: Parted, fault: str, targets: Any, options: admin.ElectOptions, rng: random.Random
) -> Applied:
    """Elect a leader, cut the links between brokers, and elect further leaders.

    Proved when the election before the cut is proved as for ``elect-leaders``, and the cut is
    proved as well. The controller still reaches all brokers, because it sends them the new leaders.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    first = await admin.elected(cluster, nodes, options, rng)
    controller = await cluster.controller()
    apart = [broker for broker in cluster.brokers if broker != controller]
    lost = list(itertools.permutations(apart, 2))
    for cut in lost:
        await cluster.cut(*cut)
    elections = [first]
    for _ in range(options.times):
        await asyncio.sleep(GAP_S[1] if options.gap_s is None else options.gap_s)
        wishes = await admin.eligible(cluster, options, rng)
        shifted = await admin.shift(cluster, wishes)
        elections.append([f"{key} by {wishes[key]}" for key in shifted.led])
    applied = partition.applied_cuts(nodes, lost)
    measured = await partition.measure(cluster, applied)
    how = "; then ".join(", ".join(led) or "no leader changed" for led in elections)
    effect = Effect(bool(first) and measured.proved, f"{how}; {measured.how}")
    return Applied(nodes, effect, applied.undo)


PACKAGE = Package(
    name="apart",
    suits=has_brokers,
    faults=(Fault("elect-apart", admin.ElectOptions, aim.BROKERS),),
    needs=(CanAdminister, CanCut, HasProcesses, HasRoles),
    color="#e7969c",
    lane="network",
    draw=draw,
    apply=apply,
    heal=partition.heal,
    restore=partition.restore,
    cleanups=(partition.LINKS,),
    room=room,
)
