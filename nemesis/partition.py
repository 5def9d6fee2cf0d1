"""partition: links of the network lose what is sent over them, or are closed.

Which links, is a plain function of the fault's name, its targets and options: :func:`cuts`.
A link that is *cut* swallows bytes: the sender notices nothing until it gives up waiting. Behind
Toxiproxy a cut link's connections are closed when it heals, so this is no partition after which a
conversation goes on where it stopped. A link that is *down* resets its connections and refuses
new ones: both sides know at once.
"""

import asyncio
import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from model.roles import (
    CLIENTS,
    ZOOKEEPER,
    CanCut,
    CanKill,
    CanPause,
    CanRefuse,
    Cluster,
    HasRoles,
    NodeId,
)
from nemesis import proof
from nemesis import targets as aim
from nemesis.package import Applied, Broken, Drawn, Effect, Package, Shape

Cut = tuple[NodeId, NodeId]

PARTIES = ("brokers", "zookeeper", "clients")
FAULTS = (
    "partition-one",
    "partition-leader",
    "partition-zookeeper",
    "partition-clients",
    "partition-halves",
    "partition-majorities-ring",
    "partition-one-way",
)
WITHOUT_GROUPS = FAULTS[:4]
"""Those that make sense for a single broker."""


class Cuttable(Cluster, CanCut, CanRefuse, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """Any kind, long enough for a session to expire or (sometimes) not quite."""
    several = len(shape.brokers) > 1
    fault = rng.choice(FAULTS if several else ("partition-zookeeper", "partition-clients"))
    duration_s = rng.uniform(0.5, 2.5) * shape.session_timeout_s
    if fault == "partition-leader" and not shape.keys:
        fault = "partition-one"
    one = aim.draw_one(rng, shape)
    way = rng.choice(["cut", "cut", "cut", "down"])
    match fault:
        case "partition-one":
            parties = rng.choice([["brokers"], ["brokers", "zookeeper"], list(PARTIES)])
            return Drawn(fault, duration_s, one, {"from": parties, "way": way})
        case "partition-leader":
            leader = f"{aim.LEADER}{rng.choice(shape.keys)}"
            return Drawn(fault, duration_s, leader, {"way": way})
        case "partition-halves":
            half = sorted(rng.sample(shape.brokers, len(shape.brokers) // 2))
            zookeeper = rng.choice(["both", "rest"])
            return Drawn(fault, duration_s, half, {"zookeeper": zookeeper, "way": way})
        case "partition-majorities-ring":
            return Drawn(fault, duration_s, rng.sample(shape.brokers, len(shape.brokers)))
        case "partition-one-way":
            options = {
                "from": rng.choice([["brokers"], ["zookeeper"], ["brokers", "zookeeper"]]),
                "direction": rng.choice(["out", "in"]),
            }
            return Drawn(fault, duration_s, one, options)
        case _:
            return Drawn(fault, duration_s, one, {"way": way})


def cuts(
    fault: str, nodes: Sequence[NodeId], options: dict[str, Any], brokers: Sequence[NodeId]
) -> list[Cut]:
    """The directed links that a fault takes away."""
    rest = [broker for broker in brokers if broker not in nodes]
    match fault:
        case "partition-one" | "partition-leader":
            parties = options.get("from", ["brokers"])
            return both_ways(nodes, _parties(parties, rest))
        case "partition-zookeeper":
            return both_ways(nodes, [ZOOKEEPER])
        case "partition-clients":
            return both_ways(nodes, [CLIENTS])
        case "partition-halves":
            other = [*rest, ZOOKEEPER] if options.get("zookeeper") == "rest" else rest
            return both_ways(nodes, other)
        case "partition-majorities-ring":
            return majorities_ring(nodes)
        case "partition-one-way":
            others = _parties(options.get("from", ["brokers"]), rest)
            outward = list(itertools.product(nodes, others))
            if options.get("direction", "out") == "out":
                return outward
            return [(other, node) for node, other in outward]
        case _:
            raise ValueError(f"no such partition: {fault}")


def both_ways(ones: Sequence[NodeId], others: Sequence[NodeId]) -> list[Cut]:
    """Nothing passes between any of these and any of those."""
    there = list(itertools.product(ones, others))
    return [*there, *((other, one) for one, other in there)]


def majorities_ring(ring: Sequence[NodeId]) -> list[Cut]:
    """Every node hears a majority (itself included), and no two hear the same one.

    Each hears its nearest neighbours on the ring. With an odd majority that is symmetric; with an
    even one (three nodes) each hears only one of the two others.
    """
    majority = len(ring) // 2 + 1
    before = (majority - 1) // 2
    lost: list[Cut] = []
    for at, hearer in enumerate(ring):
        heard = {ring[(at + step - before) % len(ring)] for step in range(majority)}
        lost += [(speaker, hearer) for speaker in ring if speaker not in heard]
    return lost


def _parties(names: Iterable[str], brokers: Sequence[NodeId]) -> list[NodeId]:
    """Of parties, or of single nodes by their ids, which is for schedules written by hand."""
    members = {"brokers": list(brokers), "zookeeper": [ZOOKEEPER], "clients": [CLIENTS]}
    members |= {node: [node] for node in brokers}
    return [node for name in names for node in members[name]]


async def apply(
    cluster: Cuttable, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when no probe through any of the links was answered, and the probed nodes live."""
    nodes = await aim.resolve(cluster, targets, rng)
    lost = cuts(fault, nodes, options, cluster.brokers)
    if options.get("way", "cut") == "down":
        return await _take_down(cluster, nodes, lost)
    for cut in lost:
        await cluster.cut(*cut)
    return await proved(cluster, nodes, lost)


async def proved(cluster: Cuttable, nodes: tuple[NodeId, ...], lost: list[Cut]) -> Applied:
    """What is to be said, and healed, of links that have been cut."""
    told = await proof.told(lambda: asyncio.gather(*(cluster.is_cut(*cut) for cut in lost)))
    silent, unknown = told.count(True), told.count(None)
    how = f"{silent} of {len(lost)} directed links left a probe unanswered"
    if unknown:
        how += f", {unknown} lead to nodes that are down"
    are_cut = silent > 0 and silent + unknown == len(lost)
    return Applied(nodes, Effect(are_cut, f"{how}: {_text(lost)}"), ("cut", Broken(lost)))


async def _take_down(cluster: Cuttable, nodes: tuple[NodeId, ...], lost: list[Cut]) -> Applied:
    pairs = sorted({(min(cut), max(cut)) for cut in lost})
    for pair in pairs:
        await cluster.refuse(*pair)
    refused = await asyncio.gather(*(cluster.is_refused(*pair) for pair in pairs))
    how = f"{refused.count(True)} of {len(pairs)} links refuse connections: {_text(pairs, '-')}"
    return Applied(nodes, Effect(bool(pairs) and all(refused), how), ("down", Broken(pairs)))


async def heal(cluster: Cuttable, applied: Applied) -> Effect:
    """Proved when every link answers again (or leads to a node that is down)."""
    way, broken = applied.undo
    links = broken.pieces
    if way == "down":
        await broken.mend(lambda pair: cluster.accept(*pair))
        refused = await asyncio.gather(*(cluster.is_refused(*pair) for pair in links))
        return Effect(not any(refused), f"{refused.count(False)} of {len(links)} links accept")
    await broken.mend(lambda cut: cluster.heal(*cut))
    told = await asyncio.gather(*(cluster.is_cut(*cut) for cut in links))
    return Effect(True not in told, f"{told.count(False)} of {len(links)} links answer again")


def _text(links: Iterable[Cut], arrow: str = "→") -> str:
    return " ".join(f"{source}{arrow}{target}" for source, target in links)


PACKAGE = Package(
    name="partition",
    faults=FAULTS,
    needs=(CanCut, CanRefuse, CanKill, CanPause, HasRoles),
    color="#ff7f0e",
    lane="network",
    draw=draw,
    apply=apply,
    heal=heal,
    weight=3.0,  # many kinds in one
)
