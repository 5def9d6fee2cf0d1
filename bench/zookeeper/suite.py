"""Defines what is measured of the two ensembles, in which order, and what is promised about it.

Each round measures both ensembles, one after the other, so that any other load of the machine
affects both alike.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.nodes import TICK_MS
from bench.suite import Notes
from bench.table import Bar, Series
from bench.zookeeper import raw
from bench.zookeeper.servers import HEAP_MB, Command, Ensemble

OURS, APACHE = "ours", "Apache"
DATA = b"x" * 100
IN_FLIGHT = 100
NODES = 1000
"""The number of nodes that are read and set."""
ONE, SEVERAL, SPREAD = "1 connection", "4 connections", "2 connections to each server"
LOADS = (ONE, SEVERAL, SPREAD)
CREATES, SETS, GETS = "creates", "sets", "gets"
LONE_P50, LONE_P99 = "lone create, p50", "lone create, p99"
FAILOVER = "leader killed, to the first write"
FAILOVER_S_MAX = 60.0
SESSIONS = 1000
LOAD_MEMORY, EMPTY_MEMORY = "memory with nodes and sessions", "memory when idle and empty"
RESTART = "start from disk"
_RETRY_S, _ATTEMPT_S = 0.005, 1.0
_PING_S = 2.0
_SETTLE_S = 2.0

METHOD = (
    "Three servers of each kind on loopback, without proxies, with a tick of "
    f"{TICK_MS} ms, on the same disk; each write is synced to the log before it is acknowledged, "
    f"which is the default of both. Apache's servers have a heap of at most {HEAP_MB} MB and "
    "Java's default options. Servers and client share the same cores.",
    "A round measures ours and Apache's, one after the other. A figure is the median over the "
    "rounds, a ratio the median of the ratios within each round. A round before the first is not "
    "counted, so that Java has compiled its code.",
    f"Creates, sets and gets: {len(DATA)} bytes of data, an asyncio client that sends encoded "
    f"requests and looks only at the error in each reply, {IN_FLIGHT} requests in flight on each "
    f"connection. '{ONE}' and '{SEVERAL}' are to the leader. Each connection creates nodes below "
    f"its own parent; sets and gets use {NODES} nodes.",
    "A lone create: one request at a time, on one connection to the leader.",
    "Leader killed (SIGKILL): clients at each other server open a session and create a node in a "
    f"loop; a refused attempt is repeated after {_RETRY_S * 1000:.0f} ms. Until the first create "
    "is acknowledged. The killed server is started again, and serves before the next round.",
    f"Memory: the mean RSS of the three servers with {SESSIONS:,} sessions, a third at each "
    "server. Start from disk: all three servers are stopped and started; until each serves.",
)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured."""

    rounds: int
    writes: int
    """The number of creates, and of sets, in one measurement."""
    reads: int
    alone: int
    """The number of lone creates in one round."""
    failovers: int
    nodes: int
    """The number of nodes that the servers hold when their memory is measured."""


FULL = Extent(rounds=5, writes=10_000, reads=40_000, alone=500, failovers=10, nodes=100_000)
SHORT = Extent(rounds=1, writes=1000, reads=2000, alone=50, failovers=1, nodes=5000)


async def measure(
    folder: Path, extent: Extent, commands: Mapping[str, Command], say: Callable[[str], None]
) -> tuple[Series, ...]:
    """Measure every figure of the ensembles that these commands start, in this folder."""
    notes = Notes(say)
    with contextlib.ExitStack() as stack:
        ensembles = [
            stack.enter_context(Ensemble(name, folder, command))
            for name, command in commands.items()
        ]
        for ensemble in ensembles:
            await ensemble.start()
            notes.add(f"{EMPTY_MEMORY}, {ensemble.name}", "MB", ensemble.resident_mb())
        await _throughput(ensembles, extent, notes, say)
        for _ in range(extent.failovers):
            for ensemble in ensembles:
                notes.add(f"{FAILOVER}, {ensemble.name}", "s", await failover(ensemble))
        for ensemble in ensembles:
            await _hold(ensemble, extent, notes)
    return notes.series()


async def _throughput(
    ensembles: Sequence[Ensemble], extent: Extent, notes: Notes, say: Callable[[str], None]
) -> None:
    unnoted = Notes(lambda _: None)
    for ensemble in ensembles:
        await _create_targets(ensemble)
        await _round(ensemble, extent, 0, unnoted)
    say("the round that is not counted has ended")
    for number in range(1, extent.rounds + 1):
        for ensemble in ensembles:
            await _round(ensemble, extent, number, notes)


async def _create_targets(ensemble: Ensemble) -> None:
    (session,) = await _sessions(ensemble, ONE)
    await session.run((raw.create(n, _target(n), DATA) for n in range(1, NODES + 1)), IN_FLIGHT)
    session.abort()


def _target(number: int) -> str:
    return f"/target-{number % NODES}"


async def _round(ensemble: Ensemble, extent: Extent, number: int, notes: Notes) -> None:
    for load in LOADS:
        sessions = await _sessions(ensemble, load)
        parents = [f"/{number}-{load.replace(' ', '-')}-{at}" for at in range(len(sessions))]
        for session, parent in zip(sessions, parents, strict=True):
            await session.call(raw.create(1, parent, b""))
        writes, reads = extent.writes // len(sessions), extent.reads // len(sessions)
        each = range(1, writes + 1)
        plans = {
            CREATES: [[raw.create(n, f"{path}/n-{n}", DATA) for n in each] for path in parents],
            SETS: [[raw.set_data(n, _target(n), DATA) for n in each]] * len(sessions),
            GETS: [[raw.get_data(n, _target(n)) for n in range(1, reads + 1)]] * len(sessions),
        }
        for what, requests in plans.items():
            rate = await _rate(sessions, requests)
            notes.add(f"{what}, {load}, {ensemble.name}", f"{what}/s", rate)
        for session in sessions:
            session.abort()
    latencies = await _alone(ensemble, extent.alone, number)
    notes.add(f"{LONE_P50}, {ensemble.name}", "ms", 1000 * median(latencies))
    notes.add(f"{LONE_P99}, {ensemble.name}", "ms", 1000 * quantiles(latencies, n=100)[98])


async def _sessions(ensemble: Ensemble, load: str) -> list[raw.Session]:
    ports = ensemble.client_ports()
    if load == SPREAD:
        chosen = [*ports.values(), *ports.values()]
    else:
        chosen = [ports[await ensemble.leader()]] * (1 if load == ONE else 4)
    return [await raw.Session.open(port) for port in chosen]


async def _rate(sessions: Sequence[raw.Session], requests: Sequence[Sequence[bytes]]) -> float:
    """Return the requests per second over all sessions."""
    begun = time.perf_counter()
    await asyncio.gather(
        *(session.run(each, IN_FLIGHT) for session, each in zip(sessions, requests, strict=True))
    )
    return sum(map(len, requests)) / (time.perf_counter() - begun)


async def _alone(ensemble: Ensemble, count: int, number: int) -> Sequence[float]:
    """Return the seconds of each create that was sent after the one before was acknowledged."""
    (session,) = await _sessions(ensemble, ONE)
    took = []
    for n in range(1, count + 1):
        request = raw.create(n, f"/alone-{number}-{n}", DATA)
        begun = time.perf_counter()
        await session.call(request)
        took.append(time.perf_counter() - begun)
    session.abort()
    return took


async def failover(ensemble: Ensemble) -> float:
    """Kill the leader; return the seconds to the first create, with all servers running again."""
    leader = await ensemble.leader()
    begun = time.perf_counter()
    ensemble.kill(leader)
    probes = [asyncio.ensure_future(_probe(port)) for port in ensemble.client_ports().values()]
    try:
        async with asyncio.timeout(FAILOVER_S_MAX):
            for first in asyncio.as_completed(probes):
                ended = await first
                break
    finally:
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
    ensemble.start_one(leader)
    await ensemble.serving()
    await asyncio.sleep(_SETTLE_S)
    return ended - begun


async def _probe(port: int) -> float:
    """Return when a server has acknowledged a create."""
    while True:
        try:
            session = await raw.Session.open(port, _ATTEMPT_S)
        except (OSError, TimeoutError, raw.Failed):
            await asyncio.sleep(_RETRY_S)
            continue
        try:
            async with asyncio.timeout(_ATTEMPT_S):
                await session.call(raw.create(1, f"/probe-{time.monotonic_ns()}", DATA))
            return time.perf_counter()
        except (TimeoutError, raw.Failed):
            await asyncio.sleep(_RETRY_S)
        finally:
            session.abort()


async def _hold(ensemble: Ensemble, extent: Extent, notes: Notes) -> None:
    """Measure memory and restart with many nodes and sessions."""
    ports = list(ensemble.client_ports().values())
    held: list[raw.Session] = []
    pings = asyncio.ensure_future(_ping(held))
    try:
        for number in range(SESSIONS):
            session = await raw.Session.open(ports[number % len(ports)])
            held.append(session)  # at once: it needs pings from now on
        await held[0].run(_nodes(extent.nodes), IN_FLIGHT)
        notes.add(f"{LOAD_MEMORY}, {ensemble.name}", "MB", ensemble.resident_mb())
        for session in held:
            await session.call(raw.get_data(1, _target(1)))  # each is alive
    finally:
        pings.cancel()
        for session in held:
            session.abort()
    ensemble.stop()
    begun = time.perf_counter()
    await ensemble.start()
    notes.add(f"{RESTART}, {ensemble.name}", "s", time.perf_counter() - begun)


def _nodes(count: int) -> Iterator[bytes]:
    """Yield the creates of this many nodes, 1,000 below each parent."""
    for n in range(count):
        parent, child = divmod(n, 1000)
        path = f"/held-{parent}/n-{child}" if child else f"/held-{parent}"
        yield raw.create(n + 1, path, DATA)


async def _ping(sessions: Sequence[raw.Session]) -> None:
    while True:
        await asyncio.sleep(_PING_S)
        for session in sessions:
            session.ping()


def bars(series: Sequence[Series]) -> tuple[Bar, ...]:
    """Return every promise with its result."""
    of = {row.what: row for row in series}

    def ratio(what: str) -> float:
        """Return the median of ours to Apache's within each round."""
        pairs = zip(of[f"{what}, {OURS}"].values, of[f"{what}, {APACHE}"].values, strict=True)
        return median(mine / theirs for mine, theirs in pairs)

    return (
        *(
            Bar(f"{what}, {load}: ours to Apache's", "x", ratio(f"{what}, {load}"), 0.7)
            for what in (CREATES, GETS)
            for load in LOADS
        ),
        Bar(f"{LONE_P50}: ours to Apache's", "x", ratio(LONE_P50), 2.0, at_most=True),
        Bar(FAILOVER, "s", of[f"{FAILOVER}, {OURS}"].typical, 1.0, at_most=True),
    )
