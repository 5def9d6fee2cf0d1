"""zookeeper: servers of ZooKeeper are killed or paused, and come back.

While the only server, or a majority of the servers, is away, no leader is elected and no ISR
changes. Partitions that have a leader continue with their replicas until a session expires.
"""

import random

from nemesis import absence, pause
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.package import DOWN, FROZEN, Fault, Package

FAULTS = ("kill-zookeeper", "pause-zookeeper")
ROLE_P = 0.5
"""The share of draws that affect one server of an ensemble, by its role."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw an absence of less or more than a session.

    No other fault is active, because meanwhile no link to ZooKeeper can be proved cut.
    """
    away_s = rng.uniform(0.2, 2.0) * shape.session_timeout_s
    fault, servers = rng.choice(FAULTS), shape.layout.zookeepers
    if len(servers) == 1:
        return Drawn(fault, away_s, list(servers), alone=True)
    if rng.random() < ROLE_P:
        return Drawn(fault, away_s, aim.draw_server(rng, shape), alone=True)
    away = rng.choice((1, len(servers) // 2 + 1, len(servers)))
    return Drawn(fault, away_s, sorted(rng.sample(servers, away)), alone=True)


PACKAGE = Package(
    name="zookeeper",
    faults=(
        Fault("kill-zookeeper", targets=aim.ONLY_KEEPERS, state=DOWN),
        Fault("pause-zookeeper", targets=aim.ONLY_KEEPERS, state=FROZEN),
    ),
    needs=absence.NEEDS,
    color="#8c564b",
    lane="process",
    draw=draw,
    suits=lambda layout: bool(layout.zookeepers),
    apply=absence.apply,
    heal=absence.heal,
    cleanups=(pause.THAW,),
)
