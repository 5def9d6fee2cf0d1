"""controllers: members of KRaft's controller quorum are killed or paused, and come back.

Without a minority the quorum elects another leader, if necessary. Without a majority no metadata
changes: no leader of a partition is elected and no ISR changes, until enough members are back.
Where controllers are a role of brokers (combined mode), these brokers are affected.
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

FAULTS = ("kill-controllers", "pause-controllers")
LEADER_P = 0.3
"""The share of draws that affect the quorum's leader alone."""


class Governed(Cluster, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw the leader of the quorum, one member, a majority, or all of them."""
    members = shape.layout.keepers
    fault = rng.choice(FAULTS)
    away_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    if rng.random() < LEADER_P:
        return Drawn(fault, away_s, aim.CONTROLLER)
    away = rng.choice((1, len(members) // 2 + 1, len(members)))
    targets = sorted(rng.sample(members, away))
    return Drawn(fault, away_s, targets, alone=away > len(members) // 2)


async def apply(
    cluster: Governed, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Kill or pause the members; proved as for a broker."""
    if fault == "kill-controllers":
        applied = await kill.apply(cluster, fault, targets, options, rng)
    else:
        applied = await pause.apply(cluster, fault, targets, pause.PauseOptions(), rng)
    return dataclasses.replace(applied, undo=fault)


async def heal(cluster: Governed, applied: Applied) -> Effect:
    """Start the members after a kill, resume them after a pause."""
    restore = kill.heal if applied.undo == "kill-controllers" else pause.heal
    return await restore(cluster, applied)


PACKAGE = Package(
    name="controllers",
    faults=(
        Fault("kill-controllers", targets=aim.KEEPERS, state=DOWN),
        Fault("pause-controllers", targets=aim.KEEPERS, state=FROZEN),
    ),
    needs=(CanKill, CanPause, HasRoles),
    color="#8c564b",
    lane="process",
    draw=draw,
    suits=lambda layout: layout.is_kraft,
    apply=apply,
    heal=heal,
    cleanups=(pause.THAW,),
)
