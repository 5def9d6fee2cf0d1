"""absence: nodes that keep the cluster's metadata are killed or paused, and come back."""

import dataclasses
import random
from typing import Any, Protocol

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanKill, CanPause
from nemesis import kill, pause
from nemesis.options import Options
from nemesis.package import Applied, Effect

NEEDS = (CanKill, CanPause, HasRoles)
_KILL = "kill-"
"""The faults of this kind kill; the others pause."""


class Leaves(Cluster, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that :data:`NEEDS` names."""


async def apply(
    cluster: Leaves, fault: str, targets: Any, options: Options, rng: random.Random
) -> Applied:
    """Kill or pause the nodes, as the fault's name says; proved as for a broker."""
    if fault.startswith(_KILL):
        applied = await kill.apply(cluster, fault, targets, options, rng)
    else:
        applied = await pause.apply(cluster, fault, targets, pause.PauseOptions(), rng)
    return dataclasses.replace(applied, undo=fault)


async def heal(cluster: Leaves, applied: Applied) -> Effect:
    """Start the nodes after a kill, resume them after a pause."""
    restore = kill.heal if applied.undo.startswith(_KILL) else pause.heal
    return await restore(cluster, applied)
