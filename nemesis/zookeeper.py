"""zookeeper: servers of ZooKeeper are killed or paused, and come back.

While the only server, or a majority of the servers, is away, no leader is elected and no ISR
changes. Partitions that have a leader continue with their replicas until a session expires.
"""

import dataclasses
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanKill, CanPause
from nemesis import kill, pause
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import DOWN, FROZEN, Applied, Effect, Fault, Package

FAULTS = ("kill-zookeeper", "pause-zookeeper")


class Headless(Cluster, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw an absence of less or more than a session.

    No other fault is active, because meanwhile no link to ZooKeeper can be proved cut.
    """
    away_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    fault, servers = rng.choice(FAULTS), shape.layout.zookeepers
    if len(servers) == 1:
        return Drawn(fault, away_s, list(servers), alone=True)
    away = rng.choice((1, len(servers) // 2 + 1, len(servers)))
    return Drawn(fault, away_s, sorted(rng.sample(servers, away)), alone=True)


async def apply(
    cluster: Headless, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Kill or pause ZooKeeper; proved as for a broker."""
    if fault == "kill-zookeeper":
        applied = await kill.apply(cluster, fault, targets, options, rng)
    else:
        applied = await pause.apply(cluster, fault, targets, pause.PauseOptions(), rng)
    return dataclasses.replace(applied, undo=fault)


async def heal(cluster: Headless, applied: Applied) -> Effect:
    """Start ZooKeeper after a kill, resume it after a pause: each fault removes its own effect."""
    restore = kill.heal if applied.undo == "kill-zookeeper" else pause.heal
    return await restore(cluster, applied)


PACKAGE = Package(
    name="zookeeper",
    faults=(
        Fault("kill-zookeeper", targets=aim.ONLY_KEEPERS, state=DOWN),
        Fault("pause-zookeeper", targets=aim.ONLY_KEEPERS, state=FROZEN),
    ),
    needs=(CanKill, CanPause, HasRoles),
    color="#8c564b",
    lane="process",
    draw=draw,
    suits=lambda layout: bool(layout.zookeepers),
    apply=apply,
    heal=heal,
    cleanups=(pause.THAW,),
)
