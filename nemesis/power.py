"""power-loss: a machine is off without a word, and what its disk was not told to keep is lost.

No connection is closed, as none is by a machine without power; its peers learn of it when they have
waited for long enough, or when it has power again and knows nothing of them. A broker syncs its
logs seldom, and answers for what it has written on the word of the others: a loss costs it records
that it has acknowledged, which it must fetch again before it counts as in sync. ZooKeeper syncs
before it answers, so that its loss costs nothing.

Some losses are nobody's fault. Records are gone when every machine that had them has lost power,
and when the only one in sync has. So a fault by itself strikes one machine, of a cluster in which
every partition has all of its replicas in sync, and never the only one of an ISR; it is over when
its broker is registered anew and the cluster is as whole again. With ``spare = false`` the fault
strikes whom it is told to, whatever that costs: nothing that was acknowledged, where brokers sync
each record before they answer for it.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from model.roles import (
    ZOOKEEPER,
    CanKill,
    CanLosePower,
    CanPause,
    Cluster,
    HasHealth,
    HasRoles,
    NodeId,
)
from nemesis import targets as aim
from nemesis.package import DOWN, Applied, Drawn, Effect, Package, Shape

ZOOKEEPERS = 0.15
"""The share of draws that strike ZooKeeper."""
WITHIN = 0.5
"""The share of draws that strike between two operations on the disk, not between two steps."""
OPERATIONS_MAX = 20
OVERHEAD_S = 8.0
"""The broker starts, waits for the session of its former life to end, and fetches what it lacks."""
WHOLE_WITHIN_S = 15.0
"""How long the cluster may take to be whole, before and after."""
LOOK_EVERY_S = 0.1
IN_SYNC_MIN = 2
"""Nobody loses power by whom an ISR would be left empty."""


@dataclass(frozen=True, slots=True)
class _Spared:
    """Whom a loss struck that is to cost nothing, as it was before."""

    node: NodeId
    registration: int | None


class _Off(NamedTuple):
    """The machines that a loss switched off."""

    nodes: tuple[NodeId, ...]
    spared: _Spared | None


class Powered(Cluster, CanLosePower, CanKill, CanPause, HasRoles, HasHealth, Protocol):
    """What this package asks of a cluster."""


def room(shape: Shape) -> bool:
    """One machine must be fewer than ``min.insync.replicas``, or lose nothing that matters."""
    return shape.min_isr > 1 or shape.synced


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """One machine, alone, for less or more than its session."""
    options: dict[str, Any] = {"spare": not shape.synced}
    if rng.random() < WITHIN:
        options["after"] = rng.randint(1, OPERATIONS_MAX)
    targets = [ZOOKEEPER] if rng.random() < ZOOKEEPERS else aim.draw_one(rng, shape)
    duration_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    return Drawn("power-loss", duration_s, targets, options, alone=True, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Powered, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved when the machines are off, and leave a probe unanswered.

    ``ValueError`` for several machines, unless ``spare`` is false.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    spare = bool(options.get("spare", True))
    if spare:
        if len(nodes) > 1:
            raise ValueError(f"one machine at a time, not {', '.join(nodes)}; or spare = false")
        if not await _within(WHOLE_WITHIN_S, cluster.is_whole):
            return Applied((), Effect(False, "not every replica was in sync: nobody was struck"))
        nodes = await _spared(cluster, nodes, rng)
    if not nodes:
        return Applied((), Effect(False, "everybody is the only one in sync of something"))
    spared = None
    if spare:
        [node] = nodes
        spared = _Spared(node, await cluster.registration(node))
    when = options.get("after", 0), options.get("renaming", "")
    await asyncio.gather(*(cluster.power_off(node, *when) for node in nodes))
    lost = await asyncio.gather(*map(cluster.lost_bytes, nodes))
    how = ", ".join(
        f"{node}: {'still answers' if count is None else f'off, {count} bytes were not synced'}"
        for node, count in zip(nodes, lost, strict=True)
    )
    return Applied(nodes, Effect(None not in lost, how), _Off(nodes, spared))


async def heal(cluster: Powered, applied: Applied) -> Effect:
    """Give power and start; proved when it runs and, unless nobody was spared, all is in sync. A
    node that another fault keeps down gets its power back, and stays down."""
    nodes, spared = applied.undo or _Off((), None)
    await asyncio.gather(*map(cluster.power_on, nodes))
    down = [node for node in applied.targets if not await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.start_node, down))
    if left := [node for node in applied.targets if not await cluster.is_running(node)]:
        return Effect(False, f"{', '.join(left)} does not run")
    how = f"{', '.join(applied.targets) or 'nobody'} has power and runs"
    if spared is None or applied.kept_down:
        return Effect(True, how)

    async def is_back() -> bool:
        # Until its former session is over, the ISRs are those of before.
        if spared.node != ZOOKEEPER:
            now = await cluster.registration(spared.node)
            if now is None or now == spared.registration:
                return False
        return await cluster.is_whole()

    if await _within(WHOLE_WITHIN_S, is_back):
        return Effect(True, f"{how}, every replica is in sync")
    return Effect(False, f"{how}, but not every replica is in sync")


async def _spared(
    cluster: Powered, nodes: tuple[NodeId, ...], rng: random.Random
) -> tuple[NodeId, ...]:
    """Who may be struck in their place, if it must be somebody else; nobody if nobody may."""
    others = rng.sample(cluster.brokers, len(cluster.brokers))
    for node in (*nodes, *others):
        if node == ZOOKEEPER or await cluster.in_sync_min(node) >= IN_SYNC_MIN:
            return (node,)
    return ()


async def _within(timeout_s: float, holds: Callable[[], Awaitable[bool]]) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while not await holds():  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(LOOK_EVERY_S)
            return True
    return False


PACKAGE = Package(
    name="power",
    faults=("power-loss",),
    needs=(CanLosePower, CanKill, CanPause, HasRoles, HasHealth),
    color="#000000",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    states={"power-loss": DOWN},
    room=room,
)
