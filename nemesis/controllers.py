"""controllers: members of KRaft's controller quorum are killed or paused, and come back.

Without a minority the quorum elects another leader, if necessary. Without a majority no metadata
changes: no leader of a partition is elected and no ISR changes, until enough members are back.
Where controllers are a role of brokers (combined mode), these brokers are affected.
"""

import random

from nemesis import absence, pause
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.package import DOWN, FROZEN, Fault, Package

FAULTS = ("kill-controllers", "pause-controllers")
LEADER_P = 0.3
"""The share of draws that affect the quorum's leader alone."""


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


PACKAGE = Package(
    name="controllers",
    faults=(
        Fault("kill-controllers", targets=aim.KEEPERS, state=DOWN),
        Fault("pause-controllers", targets=aim.KEEPERS, state=FROZEN),
    ),
    needs=absence.NEEDS,
    color="#8c564b",
    lane="process",
    draw=draw,
    suits=lambda layout: layout.is_kraft,
    apply=absence.apply,
    heal=absence.heal,
    cleanups=(pause.THAW,),
)
