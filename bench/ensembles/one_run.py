"""One simulated run of an ensemble: servers, clients, faults, and what was wrong in the end."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.ensembles.client_checks import Final, judge
from bench.ensembles.clients import (
    LEFT,
    MINE,
    OWNED,
    QUEUE,
    REGISTER,
    RIGHT,
    Client,
    Observations,
    WatchingClient,
)
from bench.ensembles.faults import Faults
from bench.ensembles.rig import Rig, Shape
from broker_impl import mutants
from broker_impl.zookeeper.errors import NodeExists, SessionExpired, ZooKeeperError
from checkers.invariants.step import Rules
from harness.cluster.observe.invariant_monitor import Watcher
from harness.simulation.deadlock import Deadlock, Livelock, OutOfTime
from harness.simulation.world import World

CLIENTS = 3
RECOVERY_S = 12.0
"""How long after the last heal every server must serve."""
LIMIT_S = 90.0
INTERVAL_S = 0.002
"""The least virtual time between two snapshots."""

Faulting = Callable[[Rig, random.Random], Awaitable[Sequence[str]]]
"""Applies faults while clients operate; returns what it has applied."""


@dataclass(slots=True)
class Outcome:
    """What a run has shown."""

    seed: int
    violations: list[str] = field(default_factory=list)
    """Each as ``name: reason``; invariants have the prefix ``invariant:``."""
    epochs: int = 0
    """The number of epochs that a leader has established."""
    operations: int = 0
    acknowledged: int = 0
    snapshots: int = 0
    steps: int = 0
    virtual_s: float = 0.0
    applied: Sequence[str] = ()
    """The faults."""
    exits: Sequence[str] = ()
    """Servers that have ended by themselves."""
    digest: str = ""
    """The hash of the trace."""

    @property
    def names(self) -> list[str]:
        """The names of the violations, sorted."""
        return sorted({violation.partition(": ")[0] for violation in self.violations})


def drawn(seconds: float) -> Faulting:
    """Return faults that are drawn for so many virtual seconds."""

    async def run(rig: Rig, rng: random.Random) -> Sequence[str]:
        faults = Faults(rig, rng)
        await faults.run(rig.world.now + seconds)
        return faults.applied

    return run


def run(
    seed: int,
    shape: Shape,
    faulting: Faulting,
    *,
    planted: Sequence[str] = (),
    clients: int = CLIENTS,
    interval_s: float = INTERVAL_S,
) -> Outcome:
    """Simulate a run and judge it; the same arguments give the same outcome."""
    mutants.plant(planted)
    try:
        return _Run(seed, shape, faulting, clients, interval_s).run()
    finally:
        mutants.removed()


class _Run:
    """The parts of one run."""

    def __init__(
        self, seed: int, shape: Shape, faulting: Faulting, clients: int, interval_s: float
    ) -> None:
        self._shape = shape
        self._faulting = faulting
        self._count = clients
        self._interval_s = interval_s
        self._calm_since_ns: int | None = None
        self._outcome = Outcome(seed)
        self._observations = Observations()
        self._finals: list[Final] = []
        self._rng = random.Random(f"{seed} ensemble")

    def run(self) -> Outcome:
        outcome = self._outcome
        with World(outcome.seed) as world:
            watcher = Watcher(
                world,
                Rules(recovery_s=RECOVERY_S),
                self._record,
                now_s=lambda: world.now,
                calm_since_ns=lambda: self._calm_since_ns,
                interval_s=self._interval_s,
            )
            rig = Rig(world, self._shape, watcher.snapshots, self._observations)
            look = world.on_idle

            def on_idle() -> None:
                look()
                rig.note()

            world.on_idle = on_idle
            control = world.host(rig.control)
            try:
                world.run(control.spawn(lambda: self._main(rig, watcher)), LIMIT_S)
            except (Deadlock, Livelock, OutOfTime) as error:
                outcome.violations.append(f"stuck: {str(error).splitlines()[0]}")
            watcher.end()
            for failure in world.take_failures():
                outcome.violations.append(f"crash: {failure}")
            outcome.epochs = len(rig.epochs)
            outcome.steps, outcome.virtual_s = world.steps, world.now
            outcome.exits = [exit_ for node in rig.nodes.values() for exit_ in node.exits]
            outcome.digest = world.trace.digest()
        seen = self._observations.seen
        outcome.operations = len(seen)
        outcome.acknowledged = sum(each.outcome == "ok" for each in seen)
        outcome.violations += self._observations.violations + judge(seen, self._finals)
        return outcome

    def _record(self, line: bytes) -> None:
        found: dict[str, Any] = msgspec.json.decode(line)
        if "invariant" in found:
            self._outcome.violations.append(f"invariant:{found['invariant']}: {found['why']}")
        else:
            self._outcome.snapshots = found["snapshots"]

    async def _main(self, rig: Rig, watcher: Watcher) -> None:
        for node in rig.nodes.values():
            node.start()
        supervisor = asyncio.create_task(rig.supervise())
        hosts = [rig.world.host(f"client-{number}") for number in range(1, self._count + 1)]
        rig.client_hosts += [host.name for host in hosts]
        await self._prepare(rig)
        clients = [self._client(rig, number) for number in range(1, self._count + 1)]
        processes = [host.spawn(client.run) for host, client in zip(hosts, clients, strict=True)]
        self._outcome.applied = await self._faulting(rig, self._rng)
        rig.heal_all()
        await self._calm(rig, watcher)
        await self._steal(rig, clients)
        for client in clients:
            client.is_over = True
        for process in processes:
            await process.ended()
        await asyncio.sleep(0.02 * self._shape.tick_ms + 1.0)
        await self._calm(rig, watcher)
        self._finals += [
            await self._final(rig, server) for server in self._shape.servers if rig.serves(server)
        ]
        self._calm_since_ns = None
        has_failed = any("failed-sync" in each for each in self._outcome.applied)
        for node in rig.nodes.values():
            # After a failed sync, a kernel may lose pages that later syncs seem to have written.
            if has_failed:
                node.kill()
            else:
                node.lose_power()
        for node in rig.nodes.values():
            node.start()
        await self._calm(rig, watcher)
        self._finals += [
            await self._final(rig, server) for server in self._shape.servers if rig.serves(server)
        ]
        supervisor.cancel()

    async def _calm(self, rig: Rig, watcher: Watcher) -> None:
        """Wait until every server serves, or must have served."""
        self._calm_since_ns = int(rig.world.now * 1e9)
        while not watcher.is_settled():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.05)

    async def _steal(self, rig: Rig, clients: Sequence[Client]) -> None:
        """Ask for the session of a client with a wrong password: no server may give it."""
        owner = clients[0].zookeeper
        if owner is None or not owner.session_id:
            return
        thief = self._reader(rig.connect())
        thief.session_id = owner.session_id
        try:
            await thief.start()
        except SessionExpired:
            return
        self._observations.violations.append(
            f"password-ignored: the session {owner.session_id:#x} was given to another client"
        )
        await thief.close()

    def _client(self, rig: Rig, number: int) -> Client:
        rng = random.Random(f"{self._outcome.seed} client {number}")
        session_ms = rng.choice((4, 8, 16)) * self._shape.tick_ms
        return Client(
            number,
            rig.connect(),
            rng,
            self._observations,
            session_ms=session_ms,
            tick_s=self._shape.tick_ms / 1000,
            now=lambda: rig.world.now,
        )

    async def _prepare(self, rig: Rig) -> None:
        client = self._reader(rig.connect())
        await client.start()
        mine = [f"{MINE}-{number}" for number in range(1, self._count + 1)]
        for path in (REGISTER, LEFT, RIGHT, QUEUE, OWNED, *mine):
            while True:
                try:
                    await client.create(path, b"0")
                except NodeExists:
                    pass
                except ZooKeeperError:
                    await client.connected()
                    continue
                break
        await client.close()

    def _reader(self, connect: str) -> WatchingClient:
        rng = random.Random(f"{self._outcome.seed} reader {connect}")
        return WatchingClient(connect, session_timeout_ms=20 * self._shape.tick_ms, rng=rng)

    async def _final(self, rig: Rig, server: int) -> Final:
        """Read everything from one server."""
        client = self._reader(rig.connect([server]))
        await client.start()
        await client.sync("/")
        register, stat = await client.get(REGISTER)
        left, left_stat = await client.get(LEFT)
        right, right_stat = await client.get(RIGHT)
        queue = {}
        for name in await client.children(QUEUE):
            queue[f"{QUEUE}/{name}"], _ = await client.get(f"{QUEUE}/{name}")
        owned = await client.children(OWNED)
        await client.close()
        return Final(
            server,
            (stat.version, stat.mzxid, register),
            (left_stat.mzxid, right_stat.mzxid, left, right),
            queue,
            owned,
        )
