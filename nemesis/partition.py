"""partition: links of the network lose what is sent over them, or are closed.

Which links these are is a pure function of the fault's name, targets and options: :func:`cuts`. A
link that is *cut* discards bytes: the sender notices nothing until it times out. Behind Toxiproxy
the connections of a cut link are closed when it heals, so this is not a partition after which a
connection resumes where it stopped. A link that is *down* resets its connections and refuses new
ones: both sides know at once.
"""

import asyncio
import dataclasses
import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.network import CanCut, CanRefuse, KeepsClients
from model.capabilities.processes import HasProcesses
from model.layout import Layout
from model.roles import CLIENTS, NodeId
from nemesis import overlap, verification
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import (
    NOT_MEASURED,
    Applied,
    Cleanup,
    Effect,
    Environment,
    Fault,
    Package,
    UndoList,
)

Cut = tuple[NodeId, NodeId]

METADATA_QUORUM = "metadata-quorum"
"""The party that ``zookeeper`` is with ZooKeeper, and ``controllers`` with KRaft: a plan with this
party runs with both."""
PARTIES = ("brokers", "zookeeper", "controllers", METADATA_QUORUM, "clients")
FAULTS = (
    "partition-one",
    "partition-leader",
    "partition-zookeeper",
    "partition-clients",
    "partition-halves",
    "partition-majorities-ring",
    "partition-one-way",
)
"""The faults that are drawn; for KRaft, ``partition-controllers`` replaces the third."""
Party = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(PARTIES)}|broker-[1-9][0-9]*)$",
        description=f"{', '.join(PARTIES)} or the id of a broker",
    ),
]
Parties = Annotated[list[Party], Meta(min_length=1)]


class LinkOptions(Options, frozen=True, kw_only=True):
    """The options of every partition."""

    way: Literal["cut", "down"] = "cut"
    """Do the links lose bytes without notice, or reset and refuse connections?"""


class PartiesOptions(LinkOptions, frozen=True, kw_only=True, rename={"parties": "from"}):
    """The options of ``partition-one`` and ``partition-leader``."""

    parties: Parties = msgspec.field(default_factory=lambda: ["brokers"])
    """From what the targets are separated."""


class HalvesOptions(LinkOptions, frozen=True, kw_only=True):
    """The options of ``partition-halves``."""

    zookeeper: Literal["both", "rest"] = "both"
    """Which brokers reach ZooKeeper, or KRaft's controllers: all, or all but the targets."""


class OneWayOptions(PartiesOptions, frozen=True, kw_only=True):
    """The options of ``partition-one-way``."""

    direction: Literal["out", "in"] = "out"
    """Is what the targets send lost, or what they receive?"""


class Cuttable(Cluster, CanCut, CanRefuse, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def room(shape: ClusterShape) -> bool:
    """Return whether there are links that can be cut."""
    layout = shape.layout
    if not layout.brokers:
        return layout.is_ensemble or shape.cuts_clients
    others = [keeper for keeper in layout.keepers if keeper not in shape.brokers]
    return shape.cuts_clients or len(shape.brokers) > 1 or bool(others)


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw any partition, mostly long enough for a session to expire, sometimes not quite."""
    layout = shape.layout
    if not layout.brokers or (layout.is_ensemble and rng.random() < aim.SERVERS_P):
        return _between_servers(rng, shape)
    drawn = _draw(rng, shape)
    return drawn if shape.cuts_clients else _without_clients(drawn, shape)


def _between_servers(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw a partition of the servers of a ZooKeeper ensemble, or between them and others."""
    layout = shape.layout
    duration_s = rng.uniform(0.5, 2.5) * shape.session_timeout_s
    way = rng.choice(["cut", "cut", "cut", "down"]) if shape.refuses_links else "cut"
    clients = ["clients"] if shape.cuts_clients and not layout.brokers else []
    users = ["brokers"] if layout.brokers else clients
    one = aim.draw_server(rng, shape)
    if not layout.is_ensemble:
        return Drawn("partition-one", duration_s, one, {"from": users, "way": way})
    several = ["partition-halves", "partition-majorities-ring"] if not layout.brokers else []
    match rng.choice(["partition-one", "partition-one", "partition-one-way", *several]):
        case "partition-halves":
            half = sorted(rng.sample(layout.zookeepers, len(layout.zookeepers) // 2))
            return Drawn("partition-halves", duration_s, half, {"way": way})
        case "partition-majorities-ring":
            ring = rng.sample(layout.voters, len(layout.voters))
            return Drawn("partition-majorities-ring", duration_s, ring)
        case "partition-one-way":
            parties = rng.choice([["zookeeper"], [*users, "zookeeper"]])
            options = {"from": parties, "direction": rng.choice(["out", "in"])}
            return Drawn("partition-one-way", duration_s, one, options)
        case _:
            separated = [["zookeeper"], ["zookeeper"], [*users, "zookeeper"]]
            separated += [clients] if clients else []  # their sessions move to other servers
            parties = rng.choice(separated)
            if parties == ["clients"]:
                return Drawn("partition-clients", duration_s, one, {"way": way})
            return Drawn("partition-one", duration_s, one, {"from": parties, "way": way})


def _without_clients(drawn: Drawn, shape: ClusterShape) -> Drawn:
    """Return a partition between nodes only that resembles the drawn one."""
    options = dict(drawn.options)
    if drawn.fault == "partition-clients":
        keepers = "controllers" if shape.layout.is_kraft else "zookeeper"
        party = "brokers" if len(shape.brokers) > 1 else keepers
        fault, options["from"] = "partition-one", [party]
    else:
        fault = drawn.fault
        if "from" in options:
            options["from"] = [party for party in options["from"] if party != "clients"]
    return dataclasses.replace(drawn, fault=fault, options=options)


def _draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw a partition of nodes or of clients."""
    several = len(shape.brokers) > 1
    keepers = "controllers" if shape.layout.is_kraft else "zookeeper"
    fault = rng.choice(FAULTS if several else ("partition-zookeeper", "partition-clients"))
    if not shape.layout.keepers:
        return _without_keepers(rng, shape, fault)
    duration_s = rng.uniform(0.5, 2.5) * shape.session_timeout_s
    if fault == "partition-leader" and not shape.keys:
        fault = "partition-one"
    one = aim.draw_one(rng, shape)
    way = rng.choice(["cut", "cut", "cut", "down"])
    way = way if shape.refuses_links else "cut"
    match fault:
        case "partition-one":
            three = ["brokers", keepers, "clients"]
            parties = rng.choice([["brokers"], ["brokers", keepers], three])
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
                "from": rng.choice([["brokers"], [keepers], ["brokers", keepers]]),
                "direction": rng.choice(["out", "in"]),
            }
            return Drawn(fault, duration_s, one, options)
        case "partition-zookeeper":
            return Drawn(f"partition-{keepers}", duration_s, one, {"way": way})
        case _:
            return Drawn(fault, duration_s, one, {"way": way})


def _without_keepers(rng: random.Random, shape: ClusterShape, fault: str) -> Drawn:
    """Draw a partition of a cluster in which no link leads to a keeper of the metadata."""
    duration_s = rng.uniform(0.5, 2.5) * shape.session_timeout_s
    way = rng.choice(["cut", "cut", "cut", "down"]) if shape.refuses_links else "cut"
    one = aim.draw_one(rng, shape)
    match fault:
        case "partition-one" | "partition-leader":
            parties = rng.choice([["brokers"], ["brokers", "clients"]])
            return Drawn("partition-one", duration_s, one, {"from": parties, "way": way})
        case "partition-halves":
            half = sorted(rng.sample(shape.brokers, len(shape.brokers) // 2))
            return Drawn(fault, duration_s, half, {"way": way})
        case "partition-majorities-ring":
            return Drawn(fault, duration_s, rng.sample(shape.brokers, len(shape.brokers)))
        case "partition-one-way":
            options = {"from": ["brokers"], "direction": rng.choice(["out", "in"])}
            return Drawn(fault, duration_s, one, options)
        case _:
            return Drawn("partition-clients", duration_s, one, {"way": way})


def cuts(fault: str, nodes: Sequence[NodeId], options: LinkOptions, layout: Layout) -> list[Cut]:
    """Return the directed links that a fault cuts, if the cluster has them."""
    match options, fault:
        case OneWayOptions(parties=parties, direction=direction), _:
            return one_way(nodes, parties, layout, direction)
        case PartiesOptions(parties=parties), _:
            return _apart(nodes, parties, layout)
        case HalvesOptions(zookeeper=zookeeper), _:
            rest = [member for member in layout.members if member not in nodes]
            keepers = (*layout.zookeepers, *layout.separate) if zookeeper == "rest" else ()
            others = [keeper for keeper in keepers if keeper not in (*rest, *nodes)]
            return both_ways(nodes, [*rest, *others])
        case _, "partition-zookeeper":
            return _apart(nodes, ["zookeeper"], layout)
        case _, "partition-controllers":
            return _apart(nodes, ["controllers"], layout)
        case _, "partition-clients":
            return _apart(nodes, ["clients"], layout)
        case _, "partition-majorities-ring":
            return majorities_ring(nodes)
        case _:
            raise ValueError(f"no such partition: {fault}")


def one_way(
    nodes: Sequence[NodeId],
    parties: Iterable[str],
    layout: Layout,
    direction: Literal["out", "in"] = "out",
) -> list[Cut]:
    """Return the links from the nodes to the parties or, with ``in``, from the parties to them."""
    outward = [
        link for party in parties for pair in _ends(nodes, party, layout) for link in _links(*pair)
    ]
    return outward if direction == "out" else [(other, node) for node, other in outward]


def _apart(nodes: Sequence[NodeId], parties: Iterable[str], layout: Layout) -> list[Cut]:
    """Return the links, in both directions, between the nodes and the parties."""
    there = one_way(nodes, parties, layout)
    return [*there, *((other, one) for one, other in there)]


def _links(ones: Iterable[NodeId], others: Iterable[NodeId]) -> list[Cut]:
    return [(one, other) for one, other in itertools.product(ones, others) if one != other]


def both_ways(ones: Sequence[NodeId], others: Sequence[NodeId]) -> list[Cut]:
    """Return the links, in both directions, between any of ``ones`` and any of ``others``."""
    there = list(itertools.product(ones, others))
    return [*there, *((other, one) for one, other in there)]


def majorities_ring(ring: Sequence[NodeId]) -> list[Cut]:
    """Return the links to cut so that every node hears a majority and no two hear the same one.

    A majority includes the node itself. Each node hears its nearest neighbours on the ring. With an
    odd majority that is symmetric; with an even one (three nodes) each hears only one of the two
    others.
    """
    majority = len(ring) // 2 + 1
    before = (majority - 1) // 2
    lost: list[Cut] = []
    for at, hearer in enumerate(ring):
        heard = {ring[(at + step - before) % len(ring)] for step in range(majority)}
        lost += [(speaker, hearer) for speaker in ring if speaker not in heard]
    return lost


def _ends(
    nodes: Sequence[NodeId], party: str, layout: Layout
) -> list[tuple[Sequence[NodeId], Sequence[NodeId]]]:
    """Return between which ends the links of the nodes to a party lead.

    A single broker as a party is for schedules written by hand; it is left out if it is a target
    itself. A controller that is a role of a broker has links of its own to the other brokers.
    """
    if party == METADATA_QUORUM:
        party = "controllers" if layout.is_kraft else "zookeeper"
    rest = [broker for broker in layout.brokers if broker not in nodes]
    if party == "controllers" and layout.combined:
        own = [end for end in layout.controllers if layout.node_of(end) in nodes]
        others = [end for end in layout.controllers if end not in own]
        return [(nodes, others), (own, rest)]
    members: dict[str, Sequence[NodeId]] = {
        "brokers": rest,
        "zookeeper": [node for node in layout.zookeepers if node not in nodes],
        "controllers": [node for node in layout.controllers if node not in nodes],
        "clients": [CLIENTS],
    }
    return [(nodes, members.get(party, [party] if party in rest else []))]


def not_down(options: LinkOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse to close links of a target that can only cut them."""
    if options.way == "cut" or issubclass(environment.kind, CanRefuse):
        return None
    return f"way = {options.way}: the target {environment.target} can only cut links"


def not_from(options: PartiesOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse a party that the cluster does not have, and links that cannot be closed."""
    if (strange := unknown_party(options, targets, environment)) is not None:
        return strange
    refuse = not_clients if "clients" in options.parties else not_down
    return refuse(options, targets, environment)


def unknown_party(options: PartiesOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse a party in ``from`` that the cluster does not have."""
    layout = environment.layout
    missing = [] if layout.zookeepers else ["zookeeper"]
    missing += [] if layout.controllers else ["controllers"]
    missing += [] if layout.brokers else ["brokers"]
    missing += [] if layout.keepers else [METADATA_QUORUM]
    known = [party for party in (*PARTIES, *environment.brokers) if party not in missing]
    strange = [party for party in options.parties if party not in known]
    if not strange:
        return None
    return f"from = {strange[0]}: must be {' or '.join(known)}"


def not_clients(options: LinkOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse links of clients where they cannot be cut, and links that cannot be closed."""
    kind = environment.kind
    if issubclass(kind, KeepsClients):
        return f"links of clients cannot be cut: {kind.why_clients_stay()}"
    return not_down(options, targets, environment)


def no_zookeeper(options: LinkOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse to separate brokers from a ZooKeeper that the cluster does not have."""
    if not environment.layout.is_kraft:
        return not_down(options, targets, environment)
    return "the cluster has no ZooKeeper; use partition-controllers"


def no_controllers(options: LinkOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse to separate brokers from a controller quorum that the cluster does not have."""
    if environment.layout.is_kraft:
        return not_down(options, targets, environment)
    return "the cluster has no controller quorum; use partition-zookeeper"


async def strike(
    cluster: Cuttable, fault: str, targets: Any, options: LinkOptions, rng: random.Random
) -> Applied:
    """Cut the links, or close them."""
    nodes = await aim.resolve(cluster, targets, rng)
    lost = [link for link in cuts(fault, nodes, options, cluster.layout) if cluster.has_link(*link)]
    if options.way == "down":
        pairs = sorted({(min(cut), max(cut)) for cut in lost})
        for pair in pairs:
            await cluster.refuse(*pair)
        return Applied(nodes, NOT_MEASURED, ("down", UndoList(pairs)))
    for cut in lost:
        await cluster.cut(*cut)
    return applied_cuts(nodes, lost)


def applied_cuts(nodes: tuple[NodeId, ...], lost: Sequence[Cut]) -> Applied:
    """Return the fault of links that have been cut, for :func:`measure` and :func:`heal`."""
    return Applied(nodes, NOT_MEASURED, ("cut", UndoList(lost)))


async def measure(cluster: Cuttable, applied: Applied) -> Effect:
    """Proved when no probe through the links was answered and a probed node is alive.

    Links that are closed are proved when they refuse connections.
    """
    way, broken = applied.undo
    if way == "down":
        return await _measure_down(cluster, broken.resources)
    lost = broken.resources
    links, refused = overlap.split(
        cluster, lost, lambda faults: faults.refused or faults.disconnected
    )
    probed = await verification.until_answered(
        lambda: asyncio.gather(*(cluster.is_cut(*cut) for cut in links))
    )
    silent, unknown = probed.count(True), probed.count(None)
    how = f"{silent} of {len(lost)} directed links left a probe unanswered"
    if unknown:
        how += f", {unknown} lead to nodes that are down"
    if refused:
        how += f", {len(refused)} are closed by other faults"
    are_cut = silent > 0 and silent + unknown == len(links)
    return Effect(are_cut, f"{how}: {_text(lost)}")


async def _measure_down(cluster: Cuttable, pairs: Sequence[Cut]) -> Effect:
    refusals = await asyncio.gather(*(cluster.is_refused(*pair) for pair in pairs))
    quiet = [pair for pair, is_refused in zip(pairs, refusals, strict=True) if not is_refused]
    links, cut = overlap.split(cluster, quiet, lambda faults: faults.cut or faults.disconnected)
    how = f"{refusals.count(True)} of {len(pairs)} links refuse connections: {_text(pairs, '-')}"
    if cut:
        how += f", {len(cut)} are cut by other faults"
    return Effect(any(refusals) and not links, how)


async def apply(
    cluster: Cuttable, fault: str, targets: Any, options: LinkOptions, rng: random.Random
) -> Applied:
    """Cut or close the links, and measure that they are."""
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, effect=await measure(cluster, applied))


async def restore(cluster: Cuttable, applied: Applied) -> None:
    """Restore the links that this fault has cut or closed."""
    way, broken = applied.undo
    if way == "down":
        await broken.restore(lambda pair: cluster.accept(*pair))
    else:
        await broken.restore(lambda cut: cluster.heal(*cut))


async def heal(cluster: Cuttable, applied: Applied) -> Effect:
    """Restore the links; proved when they answer again.

    Links to nodes that are down, and links that other faults keep from answering, do not count.
    """
    await restore(cluster, applied)
    way, broken = applied.undo
    pieces = broken.resources
    if way == "down":
        links, hidden = overlap.split(cluster, pieces, lambda faults: faults.refused)
        refused = await asyncio.gather(*(cluster.is_refused(*pair) for pair in links))
        how = f"{refused.count(False)} of {len(pieces)} links accept"
        return Effect(not any(refused), how + _kept(hidden))
    links, hidden = overlap.split(cluster, pieces, lambda faults: faults.is_silent)
    probed = await asyncio.gather(*(_is_cut(cluster, cut) for cut in links))
    how = f"{probed.count(False)} of {len(pieces)} links answer again"
    return Effect(True not in probed, how + _kept(hidden))


async def _is_cut(cluster: Cuttable, cut: Cut) -> bool | None:
    if cluster.link_faults(*cut).slowness_s > overlap.TOO_SLOW_S:
        return None
    return await cluster.is_cut(*cut)


def _kept(hidden: Sequence[Cut]) -> str:
    return f", {len(hidden)} are hidden by other faults" if hidden else ""


def _text(links: Iterable[Cut], arrow: str = "→") -> str:
    return " ".join(f"{source}{arrow}{target}" for source, target in links)


LINKS = Cleanup("the cut links", cluster=lambda cluster: cluster.heal_all())

PACKAGE = Package(
    name="partition",
    faults=(
        Fault("partition-one", PartiesOptions, refuse=not_from),
        Fault("partition-leader", PartiesOptions, aim.BROKERS, not_from),
        Fault("partition-zookeeper", LinkOptions, aim.BROKERS, no_zookeeper),
        Fault("partition-controllers", LinkOptions, refuse=no_controllers),
        Fault("partition-clients", LinkOptions, aim.BROKERS, not_clients),
        Fault("partition-halves", HalvesOptions, aim.BROKERS, not_down),
        Fault("partition-majorities-ring", LinkOptions, aim.SEVERAL_BROKERS, not_down),
        Fault("partition-one-way", OneWayOptions, refuse=not_from),
    ),
    needs=(CanCut, HasProcesses, HasRoles),
    color="#ff7f0e",
    lane="network",
    draw=draw,
    room=room,
    apply=apply,
    heal=heal,
    strike=strike,
    measure=measure,
    restore=restore,
    cleanups=(LINKS,),
    weight=3.0,  # this package has many kinds of faults
)
