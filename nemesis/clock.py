"""clock-skew, clock-jump: a node's clock is wrong, and the node is not notified.

``clock-skew`` makes all clocks and timers of a machine run at another rate: its wall clock drifts,
and a broker measures its session, its timeouts and the delays of its followers as longer or shorter
than they are. ``clock-jump`` sets the wall clock forward or back, and the heal sets it right again,
as an operator or a time daemon does. A broker's guarantees do not depend on clocks, so it must keep
them. ZooKeeper measures sessions by its own clock, which may be wrong as well.
"""

import asyncio
import random
from typing import Annotated, Any, Protocol

from msgspec import Meta

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanSetClock
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Cleanup, Effect, Fault, Package

FAULTS = ("clock-skew", "clock-jump")
RATES = (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)
"""The rates from which one is drawn."""
JUMP_S = (0.5, 3600.0)
"""The range of the size of a jump, far below the hours of the retention time."""
ZOOKEEPERS = 0.15
"""The share of draws whose target is ZooKeeper."""
WATCHED_S = 0.5
"""How long clocks are watched to measure their rates."""
RIGHT_S = 0.01
"""The largest error of a clock that counts as right."""
OVERHEAD_S = 3.0
WRONG = "on a wrong clock"
"""The state of nodes that both faults cause."""


class SkewOptions(Options, frozen=True, kw_only=True):
    """The options of ``clock-skew``."""

    rate: Annotated[float, Meta(ge=0.01, le=100)]
    """The speed of the clocks, relative to real time."""


class JumpOptions(Options, frozen=True, kw_only=True):
    """The options of ``clock-jump``."""

    seconds: Annotated[float, Meta(ge=-1e9, le=1e9, description="seconds")]
    """How far the clock is set forward; a negative number sets it back."""


class Timed(Cluster, CanSetClock, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one node, for about the length of a session."""
    fault = rng.choice(FAULTS)
    if fault == "clock-skew":
        options = {"rate": rng.choice(RATES)}
    else:
        low, high = JUMP_S
        seconds = low * (high / low) ** rng.random()
        options = {"seconds": round(rng.choice((-1, 1)) * seconds, 3)}
    is_keeper = rng.random() < ZOOKEEPERS
    targets = aim.draw_server(rng, shape) if is_keeper else aim.draw_node(rng, shape)
    duration_s = rng.uniform(0.5, 3.0) * shape.session_timeout_s
    return Drawn(fault, duration_s, targets, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Timed, fault: str, targets: Any, options: SkewOptions | JumpOptions, rng: random.Random
) -> Applied:
    """Set the clocks; proved by reading them twice, before and after a jump or while they drift."""
    nodes = await aim.resolve(cluster, targets, rng)
    if isinstance(options, SkewOptions):
        for node in nodes:
            await cluster.drift_clock(node, options.rate)
        wanted = (options.rate - 1) * WATCHED_S
        moved = await _moved(cluster, nodes, WATCHED_S)
    else:
        wanted = options.seconds
        before = await _ahead(cluster, nodes)
        for node in nodes:
            await cluster.jump_clock(node, wanted)
        after = await _ahead(cluster, nodes)
        moved = [now - was for was, now in zip(before, after, strict=True)]
    proved = bool(moved) and wanted != 0
    # The clocks run while they are read, so the time that a reading takes counts as well.
    proved = proved and all(abs(each - wanted) <= abs(wanted) / 5 + RIGHT_S / 10 for each in moved)
    within = f" within {WATCHED_S:g} s" if fault == "clock-skew" else ""
    how = ", ".join(
        f"{node}: {each:+.3f} s{within}" for node, each in zip(nodes, moved, strict=True)
    )
    return Applied(nodes, Effect(proved, how or "there was no target"))


async def heal(cluster: Timed, applied: Applied) -> Effect:
    """Correct the clocks; proved when they are right and stay right for a moment."""
    await asyncio.gather(*map(cluster.correct_clock, applied.targets))
    now = await _ahead(cluster, applied.targets)
    moved = await _moved(cluster, applied.targets, WATCHED_S)
    off = max(map(abs, (*now, *moved)), default=0.0)
    return Effect(off <= RIGHT_S, f"off by at most {off:.6f} s")


async def _moved(cluster: Timed, nodes: tuple[NodeId, ...], seconds: float) -> list[float]:
    """Return how much each clock gains on the harness's clock within that time."""
    before = await _ahead(cluster, nodes)
    await asyncio.sleep(seconds)
    return [now - was for was, now in zip(before, await _ahead(cluster, nodes), strict=True)]


async def _ahead(cluster: Timed, nodes: tuple[NodeId, ...]) -> list[float]:
    return await asyncio.gather(*map(cluster.clock_ahead_s, nodes))


PACKAGE = Package(
    name="clock",
    faults=(
        Fault("clock-skew", SkewOptions, state=WRONG),
        Fault("clock-jump", JumpOptions, state=WRONG),
    ),
    needs=(CanSetClock, CanKill, CanPause, HasRoles),
    color="#9edae5",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(Cleanup("the clock", node=lambda cluster, node: cluster.correct_clock(node)),),
    weight=0.5,
)
