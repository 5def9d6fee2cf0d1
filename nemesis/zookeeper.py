"""zookeeper: the coordinator itself dies or freezes, and comes back.

While it is away nobody is elected and no ISR changes. What has a leader and its replicas goes on,
until a broker's session is over.
"""

import dataclasses
import random
from typing import Any, Protocol

from model.roles import ZOOKEEPER, CanKill, CanPause, Cluster, HasRoles
from nemesis import kill, pause
from nemesis.package import DOWN, FROZEN, Applied, Drawn, Effect, Package, Shape

FAULTS = ("kill-zookeeper", "pause-zookeeper")


class Headless(Cluster, CanKill, CanPause, HasRoles, Protocol):
    """What this package asks of a cluster."""


def draw(rng: random.Random, shape: Shape) -> Drawn:
    """Away for less or more than a session. Alone, for no link to it can be proved cut then."""
    away_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    return Drawn(rng.choice(FAULTS), away_s, [ZOOKEEPER], alone=True)


async def apply(
    cluster: Headless, fault: str, targets: Any, options: dict[str, Any], rng: random.Random
) -> Applied:
    """Proved as a broker's death or pause is."""
    strike = kill.apply if fault == "kill-zookeeper" else pause.apply
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, undo=fault)


async def heal(cluster: Headless, applied: Applied) -> Effect:
    """Start it after a kill, resume it after a pause: each fault takes back what it did."""
    mend = kill.heal if applied.undo == "kill-zookeeper" else pause.heal
    return await mend(cluster, applied)


PACKAGE = Package(
    name="zookeeper",
    faults=FAULTS,
    needs=(CanKill, CanPause, HasRoles),
    color="#8c564b",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    states={"kill-zookeeper": DOWN, "pause-zookeeper": FROZEN},
)
