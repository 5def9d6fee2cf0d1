"""Draws a plan that tests ZooKeeper from a seed: ensemble, links, clients and faults."""

import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from broker_impl.zookeeper.client import ATTEMPTS_PER_SESSION
from harness.app import catalogue
from harness.cluster import ensembles
from harness.systems.catalogue import ZOOKEEPER
from harness.systems.zookeeper.system import SESSION_TIMEOUT
from model.layout import with_zookeeper
from workloads.package import Workload


class Ensemble(NamedTuple):
    """Numbers of servers, and how often they are drawn."""

    servers: int
    observers: int
    weight: float


ENSEMBLES = (
    Ensemble(3, 0, 8),
    Ensemble(4, 1, 3),
    Ensemble(5, 0, 3),
    Ensemble(7, 2, 2),
    Ensemble(1, 0, 1),
)
RATES_HZ = (10.0, 20.0, 40.0)
"""Operations per second; each costs CPU time."""
KINDS_MIN = 3
"""The least number of kinds of faults of a run."""
TICKS_MS = (100, 200, 500)
SESSION_TICKS = (4, 8, 16)
"""The timeout of sessions. A short tick makes leader and followers give each other up early, and
faults are drawn for about a session, so that more of them happen in a run."""
HANDSHAKE_HOPS = 10
"""A client must be able to open a session: so many messages, one after the other, are sent between
the client, its server, the leader and a follower."""
SNAP_COUNTS = (8, 40, 2_000)
LOG_COUNTS = (4, 25, 500)
"""With few transactions in memory a leader brings a server up to date from its log, or sends its
whole state; with frequent snapshots, servers start from them."""
SNAPSHOT_MS = 5
"""The least time between two looks at the servers' state: a server that joins passes through states
that exist for milliseconds only."""


def fields_of(rng: random.Random, pinned: Mapping[str, Any]) -> dict[str, Any]:
    """Return drawn fields of a plan; ``pinned`` are those that the user has set."""
    options = pinned.get("options", {})
    [drawn] = rng.choices(ENSEMBLES, [each.weight for each in ENSEMBLES])
    servers = {ensembles.SERVERS: drawn.servers, ensembles.OBSERVERS: drawn.observers}
    if servers.keys() & options.keys():
        servers = {**ensembles.OPTIONS, ensembles.SERVERS: 3} | {
            name: options[name] for name in servers if name in options
        }
    latency_ms = rng.choice((0.05, 0.2, 0.2, 1.0, 3.0))
    fields: dict[str, Any] = {
        "system": ZOOKEEPER,
        "rate_hz": rng.choice(RATES_HZ),
        "concurrency": rng.randint(4, 8),
        "brokers": 0,
        "nemesis": _nemesis(rng, servers),
    }
    jitter_ms = latency_ms * rng.choice((0.5, 4.0, 4.0))
    links = {"latency_ms": latency_ms, "jitter_ms": jitter_ms, "snapshot_ms": SNAPSHOT_MS}
    attempts = ATTEMPTS_PER_SESSION * servers[ensembles.SERVERS]
    session_ms_min = attempts * HANDSHAKE_HOPS * (latency_ms + jitter_ms)
    return {**fields, "options": {**servers, **links, **_settings(rng, session_ms_min), **options}}


def _settings(rng: random.Random, session_ms_min: float) -> dict[str, Any]:
    """Return drawn settings of the servers and of their clients' sessions."""
    tick_ms = max(rng.choice(TICKS_MS), math.ceil(session_ms_min / max(SESSION_TICKS)))
    session_ms = max(rng.choice(SESSION_TICKS) * tick_ms, session_ms_min)
    return {
        ensembles.TICK: tick_ms,
        SESSION_TIMEOUT: session_ms / 1000,
        ensembles.SNAP_COUNT: rng.choice(SNAP_COUNTS),
        ensembles.LOG_COUNT: rng.choice(LOG_COUNTS),
    }


def varied(workload: Workload, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that only this workload varies, and those that the user has set."""
    drawn = workload.vary(random.Random(f"{seed}:search:{workload.name}"))
    return {**drawn.get("options", {}), **options}


def _nemesis(rng: random.Random, servers: Mapping[str, int]) -> tuple[str, ...]:
    """Return some of the nemeses that suit such an ensemble.

    A server that is alone gets no faults of its links: none is proved while the server is down.
    """
    layout = with_zookeeper(0, servers[ensembles.SERVERS], servers[ensembles.OBSERVERS])
    kind = catalogue.SIMULATED.kind
    possible = [
        name
        for name, package in catalogue.NEMESES.items()
        if package.draw is not None
        and package.suits(layout)
        and (layout.is_ensemble or package.lane == "process")
        and all(issubclass(kind, need) for need in package.needs)
    ]
    share = rng.uniform(0.3, 1.0)
    taken = [name for name in possible if rng.random() < share]
    some = rng.sample(possible, KINDS_MIN)
    chosen = taken if len(taken) >= KINDS_MIN else some
    return tuple(name for name in possible if name in chosen)


def described(options: Mapping[str, Any], faults: str) -> str:
    """Return a short description of a drawn plan for one line."""
    servers, observers = options[ensembles.SERVERS], options[ensembles.OBSERVERS]
    return f"{servers} servers, {observers} of them observers; {faults}"
