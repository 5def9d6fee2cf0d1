"""power-loss: a machine is switched off without warning, and its disk loses what was not synced.

No connection is closed, because a machine without power closes none. Its peers notice when their
timeouts expire, or when the machine has power again and does not know their connections. A broker
rarely syncs its logs, and relies on the other replicas for what it has acknowledged: a power loss
costs it acknowledged records, which it must fetch again before it counts as in sync. ZooKeeper
syncs before it answers, so its power loss costs nothing.

Some losses are not bugs: records are gone when every machine that had them has lost power, or when
the only in-sync replica has. So by default the fault affects one machine of a cluster in which all
replicas are in sync, and never the only member of an ISR. It is over when its broker has registered
again and all replicas are in sync again. With ``spare = false`` the fault affects all of its
targets, whatever that costs: no acknowledged record, where brokers sync each record before they
acknowledge it.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol

from msgspec import Meta

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasHealth, HasRoles
from model.capabilities.machines import CanLosePower
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import DOWN, Applied, Cleanup, Effect, Environment, Fault, Package

ZOOKEEPERS = 0.15
"""The share of draws whose target is ZooKeeper."""
WITHIN = 0.5
"""The share of draws that cut the power between two disk operations of one step.

The others cut it between two steps.
"""
RENAMING = 0.3
"""The share of those, on machines of brokers, that wait for a rename."""
RENAMES = (".cleaned", ".swap", "-future")
"""How the names end that brokers change: of compacted segments, and of logs that have moved."""
AFTER_RENAME_MAX = 2
"""How many disk operations after the beginning of the rename the power fails at most."""
SEVERAL = 0.3
"""The share of draws without brokers in which several servers lose power."""
OPERATIONS_MAX = 20
OVERHEAD_S = 8.0
"""The time that the broker takes to start, to register again and to fetch what it has lost.

It registers again after the session of its former process has expired.
"""
SERVER_OVERHEAD_S = 1.5
"""The same for a server of ZooKeeper, which joins its ensemble when it has started."""
WHOLE_WITHIN_S = 15.0
"""How long to wait until all replicas are in sync, before the fault and after it."""
LOOK_EVERY_S = 0.1
IN_SYNC_MIN = 2
"""Never cut the power of a partition's only in-sync replica: its ISR must have two members."""


class PowerOptions(Options, frozen=True, kw_only=True):
    """The options of ``power-loss``."""

    spare: bool = True
    """Is one machine affected, and only while all replicas are in sync?"""
    after: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """The power fails right before the disk operation that follows so many others."""
    renaming: str = ""
    """The power fails right before a file is renamed whose name ends in this suffix; with
    ``after``, so many disk operations later."""


@dataclass(frozen=True, slots=True)
class _Spared:
    """The machine that lost power with ``spare``, and its broker's registration before."""

    node: NodeId
    registration: int | None


class _Off(NamedTuple):
    """The machines that a power loss switched off."""

    nodes: tuple[NodeId, ...]
    spared: _Spared | None


class Powered(Cluster, CanLosePower, CanKill, CanPause, HasRoles, HasHealth, Protocol):
    """The capabilities that this package needs from a cluster."""


def room(shape: ClusterShape) -> bool:
    """Is one machine fewer than ``min.insync.replicas``, or does a power loss cost no record?"""
    return shape.min_isr > 1 or shape.synced or not shape.brokers


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one machine, with no other fault active, for less or more than its session."""
    options: dict[str, Any] = {"spare": not shape.synced}
    if rng.random() < WITHIN:
        options["after"] = rng.randint(1, OPERATIONS_MAX)
    is_keeper = rng.random() < ZOOKEEPERS
    if "after" in options and shape.brokers and not is_keeper and rng.random() < RENAMING:
        after = rng.randint(0, AFTER_RENAME_MAX)
        options = {**options, "renaming": rng.choice(RENAMES), "after": after}
    targets = aim.draw_server(rng, shape) if is_keeper else aim.draw_node(rng, shape)
    if not shape.brokers:
        options["spare"] = False  # servers sync before they answer: they lose nothing
        if rng.random() < SEVERAL:
            servers = shape.layout.zookeepers
            targets = sorted(rng.sample(servers, rng.randint(1, len(servers))))
    duration_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    overhead_s = OVERHEAD_S if shape.brokers else SERVER_OVERHEAD_S
    return Drawn("power-loss", duration_s, targets, options, alone=True, overhead_s=overhead_s)


async def apply(
    cluster: Powered, fault: str, targets: Any, options: PowerOptions, rng: random.Random
) -> Applied:
    """Switch the machines off; proved when they are off and leave a probe unanswered.

    Raises ``ValueError`` for several machines, unless ``spare`` is false.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    if options.spare:
        if len(nodes) > 1:
            raise ValueError(
                f"only one machine may lose power, not {', '.join(nodes)}, unless spare = false"
            )
        if not await _within(WHOLE_WITHIN_S, cluster.is_whole):
            return Applied((), Effect(False, "a replica was out of sync, so no power was cut"))
        nodes = await _spared(cluster, nodes, rng)
    if not nodes:
        return Applied((), Effect(False, "every target is the only in-sync replica of a partition"))
    spared = None
    if options.spare:
        [node] = nodes
        spared = _Spared(node, await cluster.registration(node))
    moment = options.after, options.renaming
    await asyncio.gather(*(cluster.power_off(node, *moment) for node in nodes))
    lost = await asyncio.gather(*map(cluster.lost_bytes, nodes))
    how = ", ".join(
        f"{node}: {'still answers' if count is None else f'off, {count} bytes were not synced'}"
        for node, count in zip(nodes, lost, strict=True)
    )
    return Applied(nodes, Effect(None not in lost, how), _Off(nodes, spared))


async def heal(cluster: Powered, applied: Applied) -> Effect:
    """Switch the machines on and start their nodes; proved when the nodes run.

    Unless ``spare`` was false, all replicas must be in sync as well. A node that another fault
    keeps down gets its power back, and stays down.
    """
    nodes, spared = applied.undo or _Off((), None)
    await asyncio.gather(*map(cluster.power_on, nodes))
    down = [node for node in applied.targets if not await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.start_node, down))
    if left := [node for node in applied.targets if not await cluster.is_running(node)]:
        return Effect(False, f"{', '.join(left)} does not run")
    how = f"{', '.join(applied.targets) or 'no node'} has power and runs"
    if spared is None or applied.kept_down:
        return Effect(True, how)

    async def is_back() -> bool:
        # Until the former session has expired, the ISRs are those from before the fault.
        if spared.node in cluster.brokers:
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
    """Return the target, or another broker if the target may not lose power; empty if none may."""
    others = rng.sample(cluster.brokers, len(cluster.brokers))
    for node in (*nodes, *others):
        if node not in cluster.brokers or await cluster.in_sync_min(node) >= IN_SYNC_MIN:
            return (node,)
    return ()


async def _within(timeout_s: float, holds: Callable[[], Awaitable[bool]]) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while not await holds():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(LOOK_EVERY_S)
            return True
    return False


def _unspared(options: PowerOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse several machines, of which a cluster need not survive the loss."""
    if not options.spare or isinstance(targets, str) or len(targets) == 1:
        return None
    return f"spare = true: must be false for several targets ({', '.join(targets)})"


PACKAGE = Package(
    name="power",
    faults=(Fault("power-loss", PowerOptions, refuse=_unspared, state=DOWN),),
    needs=(CanLosePower, CanKill, CanPause, HasRoles, HasHealth),
    color="#000000",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the power loss", node=lambda cluster, node: cluster.power_on(node)),),
    room=room,
)
