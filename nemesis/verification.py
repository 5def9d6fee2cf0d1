"""Measurements that are repeated until they prove an effect, or until time is up.

A probe needs a node at the other end that could answer, and a counter needs time to count.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from model.link_faults import LinkFaults
from model.roles import CLIENTS, NodeId
from nemesis import overlap
from nemesis import targets as aim

Found = TypeVar("Found")
Answer = TypeVar("Answer")

TRIES = 6
BETWEEN_S = 0.5


class Reachable(aim.Inhabited, Protocol):
    """The methods that measuring reachability needs from a cluster."""

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults: ...
    async def answers(self, node: NodeId) -> bool: ...
    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None: ...


async def until(measure: Callable[[], Awaitable[Found]], holds: Callable[[Found], bool]) -> Found:
    """Measure until the result holds, and return it; after some time, return the last result."""
    found = await measure()
    for _ in range(TRIES - 1):
        if holds(found):
            break
        await asyncio.sleep(BETWEEN_S)
        found = await measure()
    return found


async def until_answered(
    probe: Callable[[], Awaitable[Sequence[Answer | None]]],
) -> Sequence[Answer | None]:
    """Repeat the probes until one of them has a result (not ``None``), and return their results.

    A node that has just been started may not answer yet, and gets a moment to do so.
    """
    return await until(probe, lambda answers: any(answer is not None for answer in answers))


async def silent(cluster: Reachable, nodes: Iterable[NodeId]) -> list[NodeId]:
    """Return the running nodes that do not answer a probe that bypasses links which may be cut.

    A node that another fault keeps disconnected is not among them.
    """
    standing = [node for node in nodes if await aim.stands(cluster, node)]
    answering = await asyncio.gather(*(_answers(cluster, node) for node in standing))
    return [node for node, answers in zip(standing, answering, strict=True) if not answers]


async def _answers(cluster: Reachable, node: NodeId) -> bool:
    """Does the node answer? Whether a link to it is cut can be measured only if it does."""
    party = CLIENTS if node in cluster.layout.members else cluster.brokers[0]
    faults = cluster.link_faults(party, node)
    if faults.disconnected:
        return True  # that fault is healed and proved separately
    if faults.refused or faults.slowness_s > overlap.TOO_SLOW_S:
        return await until(lambda: cluster.answers(node), bool)
    [is_cut] = await until_answered(lambda: asyncio.gather(cluster.is_cut(party, node)))
    return is_cut is not None
