"""Proof by measuring, which may take a moment to come true.

A probe needs somebody at the other end who would answer, and a counter needs time to count.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from model.link_faults import LinkFaults
from model.roles import CLIENTS, NodeId
from nemesis import overlap
from nemesis import targets as aim

Found = TypeVar("Found")
Told = TypeVar("Told")

TRIES = 6
BETWEEN_S = 0.5


class Reachable(aim.Inhabited, Protocol):
    """What asking for an answer asks of a cluster."""

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults: ...
    async def answers(self, node: NodeId) -> bool: ...
    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None: ...


async def until(measure: Callable[[], Awaitable[Found]], holds: Callable[[Found], bool]) -> Found:
    """What is measured: the first that holds, or what there is after some time."""
    found = await measure()
    for _ in range(TRIES - 1):
        if holds(found):
            break
        await asyncio.sleep(BETWEEN_S)
        found = await measure()
    return found


async def told(probe: Callable[[], Awaitable[Sequence[Told | None]]]) -> Sequence[Told | None]:
    """What the probes tell, as soon as one of them tells anything (``None`` is nothing).

    A node that has just been started may not answer yet, and is given a moment.
    """
    return await until(probe, lambda answers: any(answer is not None for answer in answers))


async def silent(cluster: Reachable, nodes: Iterable[NodeId]) -> list[NodeId]:
    """Those that stand and yet do not answer, past the links that others may have cut; a node that
    another fault keeps disconnected is none of them."""
    standing = [node for node in nodes if await aim.stands(cluster, node)]
    answering = await asyncio.gather(*(_answers(cluster, node) for node in standing))
    return [node for node, answers in zip(standing, answering, strict=True) if not answers]


async def _answers(cluster: Reachable, node: NodeId) -> bool:
    """Whether a link is cut can only be told of a node that answers past it."""
    party = CLIENTS if node in cluster.brokers else cluster.brokers[0]
    faults = cluster.link_faults(party, node)
    if faults.disconnected:
        return True  # by another fault, which is healed and proved by itself
    if faults.refused or faults.slowness_s > overlap.TOO_SLOW_S:
        return await until(lambda: cluster.answers(node), bool)
    [is_cut] = await told(lambda: asyncio.gather(cluster.is_cut(party, node)))
    return is_cut is not None
