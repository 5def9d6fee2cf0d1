"""pause: a broker is frozen (SIGSTOP) and resumes later, as if no time had passed.

If the pause is shorter than its ZooKeeper session, the broker is merely slow. If it is longer, the
broker is declared dead, another broker becomes leader in its place, and it resumes as a leader
without followers.
"""

import asyncio
import random
from typing import Any, Literal, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanPause, HasProcesses
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import FROZEN, Applied, Cleanup, Effect, Fault, Package

SETTLE_S = 10.0
"""How long until the state of all targets is measured.

A signal takes effect at once, except in a process inside a system call; but a frozen node of a
user's cluster is recognized by a probe that it leaves unanswered, one node after the other.
"""


class PauseOptions(Options, frozen=True, kw_only=True):
    """The options of ``pause``."""

    session: Literal["shorter", "longer"] | None = None
    """How the duration relates to a session: a note for readers of the schedule."""


class Pausable(Cluster, CanPause, HasProcesses, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker; half of the time for longer than its session."""
    longer = rng.random() < 0.5
    sessions = rng.uniform(1.5, 2.5) if longer else rng.uniform(0.2, 0.7)
    options = {"session": "longer" if longer else "shorter"}
    return Drawn("pause", sessions * shape.session_timeout_s, aim.draw_node(rng, shape), options)


async def apply(
    cluster: Pausable, fault: str, targets: Any, options: PauseOptions, rng: random.Random
) -> Applied:
    """Stop the targets; proved when the operating system reports their processes as stopped."""
    nodes = await aim.resolve(cluster, targets, rng)
    nodes = tuple([node for node in nodes if await cluster.is_running(node)])
    if not nodes:
        return Applied((), Effect(False, "no target was running"))
    await asyncio.gather(*map(cluster.pause, nodes))
    stopped = await _all(cluster, nodes, paused=True)
    how = f"{', '.join(nodes)}: the process is {'stopped' if stopped else 'not stopped'}"
    return Applied(nodes, Effect(stopped, how))


async def heal(cluster: Pausable, applied: Applied) -> Effect:
    """Resume the targets that still run; proved when none of them is stopped any more."""
    there = [node for node in applied.targets if await cluster.is_running(node)]
    await asyncio.gather(*map(cluster.resume, there))
    return Effect(await _all(cluster, there, paused=False), f"{', '.join(there)}: resumed")


async def _all(cluster: Pausable, nodes: "tuple[str, ...] | list[str]", *, paused: bool) -> bool:
    async def reached() -> bool:
        return all([await cluster.is_paused(node) is paused for node in nodes])

    try:
        async with asyncio.timeout(SETTLE_S):
            while not await reached():  # noqa: ASYNC110 - the system has no event for it
                await asyncio.sleep(0.002)
    except TimeoutError:
        return False
    return True


async def _thaw(cluster: CanPause, node: NodeId) -> None:
    if await cluster.is_paused(node):
        await cluster.resume(node)


THAW = Cleanup("the pause", node=_thaw)

PACKAGE = Package(
    name="pause",
    faults=(Fault("pause", PauseOptions, state=FROZEN),),
    needs=(CanPause, HasProcesses, HasRoles),
    color="#9467bd",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(THAW,),
)
