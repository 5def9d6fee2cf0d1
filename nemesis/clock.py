"""clock-skew, clock-jump: a node's clock is wrong, and nobody tells it.

``clock-skew`` has all clocks of a machine run at another rate, its timers with them: a wall clock
gets further and further off, a broker believes that its session, its time-outs and its followers'
delays are longer or shorter than they are. ``clock-jump`` sets the wall clock forward or back, and
back again when it is over, as an operator or a time daemon does. What a broker promises depends on
no clock, so that it must keep it. ZooKeeper counts sessions by its own, and may be wrong, too.
"""

import asyncio
import random
from typing import Any, Protocol

from model.roles import ZOOKEEPER, CanKill, CanPause, CanSetClock, Cluster, HasRoles, NodeId
from nemesis import targets as aim
from nemesis.package import Applied, Drawn, Effect, Package, Shape

FAULTS = ("clock-skew", "clock-jump")
RATES = (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)
"""Of which one is drawn."""
JUMP_S = (0.5, 3600.0)
"""From and to, when drawn, forward or back. Far less than what is kept for hours is kept for."""
ZOOKEEPERS = 0.15
"""The share of draws that strike ZooKeeper."""
WATCHED_S = 0.5
"""How long a clock is watched to tell its rate."""
RIGHT_S = 0.01
"""A clock is right that is off by no more."""
OVERHEAD_S = 3.0


class Timed(Cluster, CanSetClock, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """One node, for about a session."""
    fault = rng.choice(FAULTS)
    if fault == "clock-skew":
        options = {"rate": rng.choice(RATES)}
    else:
        low, high = JUMP_S
        seconds = low * (high / low) ** rng.random()
        options = {"seconds": round(rng.choice((-1, 1)) * seconds, 3)}
    targets = [ZOOKEEPER] if rng.random() < ZOOKEEPERS else aim.draw_one(rng, shape)
    duration_s = rng.uniform(0.5, 3.0) * shape.session_timeout_s
    return Drawn(fault, duration_s, targets, options, overhead_s=OVERHEAD_S)


async def apply(
    cluster: Timed, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved by looking at the clocks twice: before and after a jump, or while they run."""
    nodes = await aim.resolve(cluster, targets, rng)
    if fault == "clock-skew":
        rate = float(options["rate"])
        for node in nodes:
            await cluster.drift_clock(node, rate)
        wanted = (rate - 1) * WATCHED_S
        moved = await _moved(cluster, nodes, WATCHED_S)
    else:
        wanted = float(options["seconds"])
        before = await _ahead(cluster, nodes)
        for node in nodes:
            await cluster.jump_clock(node, wanted)
        after = await _ahead(cluster, nodes)
        moved = [now - was for was, now in zip(before, after, strict=True)]
    proved = bool(moved) and wanted != 0
    # It is looked at while it runs: what the looking takes counts as well.
    proved = proved and all(abs(each - wanted) <= abs(wanted) / 5 + RIGHT_S / 10 for each in moved)
    within = f" within {WATCHED_S:g} s" if fault == "clock-skew" else ""
    how = ", ".join(
        f"{node}: {each:+.3f} s{within}" for node, each in zip(nodes, moved, strict=True)
    )
    return Applied(nodes, Effect(proved, how or "nobody was there"))


async def heal(cluster: Timed, applied: Applied) -> Effect:
    """Proved when the clocks are right, and stay so for a moment."""
    await asyncio.gather(*map(cluster.correct_clock, applied.targets))
    now = await _ahead(cluster, applied.targets)
    moved = await _moved(cluster, applied.targets, WATCHED_S)
    off = max(map(abs, (*now, *moved)), default=0.0)
    return Effect(off <= RIGHT_S, f"off by at most {off:.6f} s")


async def _moved(cluster: Timed, nodes: tuple[NodeId, ...], seconds: float) -> list[float]:
    """By how much the clocks get ahead in so much time."""
    before = await _ahead(cluster, nodes)
    await asyncio.sleep(seconds)
    return [now - was for was, now in zip(before, await _ahead(cluster, nodes), strict=True)]


async def _ahead(cluster: Timed, nodes: tuple[NodeId, ...]) -> list[float]:
    return await asyncio.gather(*map(cluster.clock_ahead_s, nodes))


PACKAGE = Package(
    name="clock",
    faults=FAULTS,
    needs=(CanSetClock, CanKill, CanPause, HasRoles),
    color="#9edae5",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    states=dict.fromkeys(FAULTS, "on a wrong clock"),
    weight=0.5,
)
