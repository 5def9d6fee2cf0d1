"""The targets of a fault: named when the schedule is drawn, resolved when the fault is applied.

A target is a list of node ids, ``leader:topic-partition``, ``group-coordinator:GROUP``,
``transaction-coordinator:TRANSACTIONAL-ID``, ``controller``, or ``not-controller`` for the first of
the other brokers. If no node has the role, or if a target broker is down or paused already, another
running broker takes its place: a fault without targets would prove nothing.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from model.roles import Coordinated, NodeId
from model.text import brief
from nemesis.package import ClusterShape

CONTROLLER = "controller"
NOT_CONTROLLER = "not-controller"
LEADER = "leader:"
COORDINATORS: Mapping[str, Coordinated] = {
    "group-coordinator:": "group",
    "transaction-coordinator:": "transaction",
}


class Inhabited(Protocol):
    """The methods that resolving targets needs from a cluster."""

    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    async def is_running(self, node: NodeId) -> bool: ...
    async def is_paused(self, node: NodeId) -> bool: ...
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None: ...
    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None: ...


def draw_one(rng: random.Random, shape: ClusterShape) -> Any:
    """Draw one broker, by id or by role."""
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


ROLES = (
    "a list of nodes, controller, not-controller, leader:KEY, group-coordinator:GROUP or"
    " transaction-coordinator:ID"
)


def refusal(targets: Any, nodes: Sequence[NodeId]) -> str | None:
    """Return why no fault can have these targets in a cluster of these nodes, or ``None``."""
    match targets:
        case str() if targets in (CONTROLLER, NOT_CONTROLLER):
            return None
        case str() if any(targets.startswith(p) and targets != p for p in (LEADER, *COORDINATORS)):
            return None
        case [_, *_]:
            strange = [node for node in targets if node not in nodes]
            return f"no node {brief(strange[0])}; there is {', '.join(nodes)}" if strange else None
        case _:
            return f"targets: {brief(targets)}: must be {ROLES}"


async def resolve(cluster: Inhabited, targets: Any, rng: random.Random) -> tuple[NodeId, ...]:
    """Return the nodes that the targets mean now, without duplicates.

    Every broker among them runs, if enough brokers do.
    """
    if isinstance(targets, str):
        node = await _holder(cluster, targets)
        wanted: Sequence[NodeId | None] = [node]
    else:
        wanted = list(targets)
    standing = [broker for broker in cluster.brokers if await stands(cluster, broker)]
    chosen: list[NodeId] = []
    for node in wanted:
        if node is None or (node in cluster.brokers and node not in standing):
            spare = [broker for broker in standing if broker not in (*wanted, *chosen)]
            node = rng.choice(spare) if spare else node
        if node is not None and node not in chosen:
            chosen.append(node)
    return tuple(chosen)


async def stands(cluster: Inhabited, node: NodeId) -> bool:
    """Is the node up and not paused?"""
    return await cluster.is_running(node) and not await cluster.is_paused(node)


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
