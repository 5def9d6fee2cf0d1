"""The targets of a fault: named when the schedule is drawn, resolved when the fault is applied.

A target is a list of node ids, ``leader:topic-partition``, ``group-coordinator:GROUP``,
``transaction-coordinator:TRANSACTIONAL-ID``, ``controller``, ``not-controller`` for the first of
the other brokers, or the role of a ZooKeeper server: ``zk-leader``, ``zk-follower``,
``zk-observer``. If no node has the role, or if a target broker is down or paused already, another
running broker takes its place, and a running server that of a server: a fault without targets would
prove nothing. In a cluster without brokers, the servers take the place of brokers.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from model.capabilities.control_plane import EnsembleRole, HasEnsemble
from model.layout import Layout
from model.roles import Coordinated, NodeId
from model.text import brief
from nemesis.draws import ClusterShape

CONTROLLER = "controller"
NOT_CONTROLLER = "not-controller"
LEADER = "leader:"
ENSEMBLE: Mapping[str, EnsembleRole] = {
    "zk-leader": "leader",
    "zk-follower": "follower",
    "zk-observer": "observer",
}
SERVERS_P = 0.3
"""The share of draws whose target is a server, in a cluster of brokers with an ensemble."""
COORDINATORS: Mapping[str, Coordinated] = {
    "group-coordinator:": "group",
    "transaction-coordinator:": "transaction",
}


class Inhabited(Protocol):
    """The methods that resolving targets needs from a cluster."""

    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    @property
    def layout(self) -> Layout: ...
    async def is_running(self, node: NodeId) -> bool: ...
    async def is_paused(self, node: NodeId) -> bool: ...
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None: ...
    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None: ...


def draw_one(rng: random.Random, shape: ClusterShape) -> Any:
    """Draw one node, by id or by role: a broker, or the controller, which may be another process.

    See :func:`draw_broker` for faults that only a broker can have. Without brokers, draw a server.
    """
    if not shape.brokers:
        return draw_server(rng, shape)
    kinds = ["node", "node", CONTROLLER, *(["leader"] * 2 if shape.keys else [])]
    kinds += ["coordinator"] * 4 if shape.coordinators else []
    match rng.choice(kinds):
        case "coordinator":
            return rng.choice(shape.coordinators)
        case "leader":
            return f"{LEADER}{rng.choice(shape.keys)}"
        case "controller":
            return CONTROLLER
        case _:
            return [rng.choice(shape.brokers)]


def draw_node(rng: random.Random, shape: ClusterShape) -> Any:
    """Draw one node as :func:`draw_one`, also a server of a ZooKeeper ensemble."""
    if shape.brokers and shape.layout.is_ensemble and rng.random() < SERVERS_P:
        return draw_server(rng, shape)
    return draw_one(rng, shape)


def draw_server(rng: random.Random, shape: ClusterShape) -> Any:
    """Draw one ZooKeeper server, by id or by role: mostly the leader."""
    if not shape.layout.is_ensemble:
        return list(shape.layout.zookeepers)
    drawn = ["zk-leader", "zk-leader", "zk-follower", *shape.layout.observers[:1]]
    one = rng.choice([*drawn, ""])
    if one in shape.layout.observers:
        return "zk-observer"
    return one or [rng.choice(shape.layout.zookeepers)]


def draw_broker(rng: random.Random, shape: ClusterShape) -> Any:
    """Draw one broker, by id or by role."""
    drawn = draw_one(rng, shape)
    return [rng.choice(shape.brokers)] if drawn == CONTROLLER and shape.layout.separate else drawn


ROLES = (
    "controller, not-controller, leader:TOPIC-PARTITION, group-coordinator:GROUP or"
    " transaction-coordinator:ID"
)
_KEY = re.compile(r".+-[0-9]+")


@dataclass(frozen=True, slots=True)
class TargetRule:
    """What the targets of a fault may be: nodes, or one node by its role."""

    brokers: bool = True
    keepers: bool = False
    """May they be the nodes that keep the metadata: ZooKeeper, or KRaft's controllers?"""
    roles: bool = True
    at_least: int = 1
    """The number of different nodes that a list must have."""
    at_most: int | None = None

    def allowed(self, layout: Layout) -> str:
        """Return which targets the rule allows in a cluster, in words."""
        keepers = "controllers" if layout.is_kraft else "zookeeper"
        kinds = [("brokers", self.brokers and bool(layout.brokers))]
        kinds.append((keepers, self.keepers or not layout.brokers))
        nodes = " and ".join(kind for kind, may_be in kinds if may_be)
        size = "one of" if self.at_most == 1 else "" if self.at_least == 1 else "several of"
        text = f"a list of {size and f'{size} '}{nodes}"
        listed = [ROLES] if self.roles and layout.brokers else []
        listed += [", ".join(ENSEMBLE)] if self._has_servers(layout) else []
        return ", ".join([text, *listed])

    def refusal(self, targets: Any, layout: Layout) -> str | None:
        """Return why a fault cannot have these targets, or ``None``."""
        nodes = [*(layout.members if self.brokers else ())]
        nodes += [node for node in (layout.keepers if self.keepers else ()) if node not in nodes]
        match targets:
            case str() if targets in ENSEMBLE and self._has_servers(layout):
                return None
            case str() if self.roles and layout.brokers and _is_role(targets):
                return None
            case [_, *_]:
                strange = [node for node in targets if node not in nodes]
                if strange:
                    return f"no node {brief(strange[0])} ({', '.join(nodes)})"
                if self.at_least <= len(set(targets)) <= (self.at_most or len(nodes)):
                    return None
            case _:
                pass
        return f"no such target: {brief(targets)} ({self.allowed(layout)})"

    def _has_servers(self, layout: Layout) -> bool:
        """Return whether a target may be a server of an ensemble, by its role."""
        return layout.is_ensemble and (self.keepers or not layout.brokers)


BROKERS = TargetRule()
ONE_BROKER = TargetRule(at_most=1)
SEVERAL_BROKERS = TargetRule(roles=False, at_least=2)
NODES = TargetRule(keepers=True)
KEEPERS = TargetRule(brokers=False, keepers=True)
ONLY_KEEPERS = TargetRule(brokers=False, keepers=True, roles=False)


def _is_role(target: str) -> bool:
    if target.startswith(LEADER):
        return _KEY.fullmatch(target.removeprefix(LEADER)) is not None
    is_coordinator = any(target.startswith(each) and target != each for each in COORDINATORS)
    return is_coordinator or target in (CONTROLLER, NOT_CONTROLLER)


async def resolve(cluster: Inhabited, targets: Any, rng: random.Random) -> tuple[NodeId, ...]:
    """Return the nodes that the targets mean now, without duplicates.

    Every broker among them runs, if enough brokers do.
    """
    if isinstance(targets, str) and targets in ENSEMBLE:
        return await _server(cluster, ENSEMBLE[targets], rng)
    if isinstance(targets, str):
        node = await _holder(cluster, targets)
        wanted: Sequence[NodeId | None] = [node]
    else:
        wanted = list(targets)
    members = cluster.layout.members
    standing = [member for member in members if await stands(cluster, member)]
    chosen: list[NodeId] = []
    for node in wanted:
        if node is None or (node in members and node not in standing):
            spare = [member for member in standing if member not in (*wanted, *chosen)]
            node = rng.choice(spare) if spare else node
        if node is not None and node not in chosen:
            chosen.append(node)
    return tuple(chosen)


async def stands(cluster: Inhabited, node: NodeId) -> bool:
    """Is the node up and not paused?"""
    return await cluster.is_running(node) and not await cluster.is_paused(node)


async def _server(cluster: Inhabited, role: EnsembleRole, rng: random.Random) -> tuple[NodeId, ...]:
    """Return a server that has the role and runs, else another one that runs."""
    servers = cluster.layout.zookeepers
    found = await cluster.zookeepers() if isinstance(cluster, HasEnsemble) else {}
    standing = [server for server in servers if await stands(cluster, server)]
    holders = [server for server in standing if found.get(server) == role]
    candidates = holders or standing or list(servers)
    return (rng.choice(candidates),)


async def _holder(cluster: Inhabited, role: str) -> NodeId | None:
    if role == CONTROLLER:
        return await cluster.controller()
    if role == NOT_CONTROLLER:
        controller = await cluster.controller()
        return next((broker for broker in cluster.brokers if broker != controller), None)
    if role.startswith(LEADER):
        return await cluster.leader(role.removeprefix(LEADER))
    for prefix, of in COORDINATORS.items():
        if role.startswith(prefix):
            return await cluster.coordinator(of, role.removeprefix(prefix))
    raise ValueError(f"no such target: {role} ({ROLES})")
