"""Faults of an ensemble drawn from a seed: each begins, lasts for a while, and ends by itself."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from bench.ensembles.rig import Rig, name_of

PAUSE_S = (0.1, 1.2)
"""The time between the beginnings of two faults."""
LASTS_S = (0.1, 1.6)
INTERRUPT_WITHIN_S = 0.5
"""How soon a process ends even if its disk was asked for fewer operations than drawn."""


class Faults:
    """Draws and applies faults until it is cancelled; ``applied`` lists them."""

    def __init__(self, rig: Rig, rng: random.Random) -> None:
        self.rig = rig
        self.rng = rng
        self.applied: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._disks_fail = rng.random() < 0.3
        """Errors of disks and losses of power are in different runs: after a failed sync, a later
        loss of power may take what was synced since."""

    async def run(self, until_s: float) -> None:
        """Apply faults until this time, and wait for the end of the last ones."""
        kinds = self._kinds()
        names, weights = [*kinds], [weight for _, weight in kinds.values()]
        while self.rig.world.now < until_s:
            await asyncio.sleep(self.rng.uniform(*PAUSE_S))
            [name] = self.rng.choices(names, weights)
            server = self._choose()
            self.applied.append(f"{self.rig.world.now:.3f} {name} {server}")
            self._tasks.append(asyncio.create_task(kinds[name][0](server)))
        await asyncio.gather(*self._tasks)

    def _choose(self) -> int:
        leader = self.rig.leader()
        if leader is not None and self.rng.random() < 0.55:
            return leader
        return self.rng.choice(self.rig.shape.servers)

    def _kinds(self) -> dict[str, tuple[Callable[[int], Awaitable[None]], float]]:
        kinds: dict[str, tuple[Callable[[int], Awaitable[None]], float]] = {
            "kill": (self._kill, 3),
            "kill-all": (self._kill_all, 0.5),
            "pause": (self._pause, 2),
            "isolate": (self._isolate, 2),
            "halves": (self._halves, 1.5),
            "one-way": (self._one_way, 1.5),
            "reset": (self._reset, 1),
            "slow-link": (self._slow_link, 1.5),
            "slow-disk": (self._slow_disk, 1),
            "clock": (self._clock, 0.5),
        }
        if self._disks_fail:
            kinds["failed-sync"] = (self._failed_sync, 1.5)
            kinds["full-disk"] = (self._full_disk, 1)
        else:
            kinds["power"] = (self._power, 3)
            kinds["power-all"] = (self._power_all, 0.7)
        return kinds

    async def _last(self) -> None:
        await asyncio.sleep(self.rng.uniform(*LASTS_S))

    async def _interrupted(self, server: int, action: Callable[[], object]) -> None:
        """End a process between two operations of its disk, or when it has asked for too few."""
        node = self.rig.nodes[server]
        operations = self.rng.choice((0, self.rng.randrange(1, 40)))
        if operations and node.is_up:
            node.disk.interrupt(operations, action)
            await asyncio.sleep(self.rng.uniform(0, INTERRUPT_WITHIN_S))
            node.disk.cancel_interrupt()
        action()

    async def _kill(self, server: int) -> None:
        node = self.rig.nodes[server]
        await self._interrupted(server, node.kill)
        await self._last()
        node.start()

    async def _power(self, server: int) -> None:
        node = self.rig.nodes[server]
        await self._interrupted(server, node.lose_power)
        await self._last()
        node.start()

    async def _kill_all(self, server: int) -> None:
        del server
        for node in self.rig.nodes.values():
            node.kill()
        await self._last()
        await self._start_all()

    async def _power_all(self, server: int) -> None:
        del server
        for node in self.rig.nodes.values():
            node.lose_power()
        await self._last()
        await self._start_all()

    async def _start_all(self) -> None:
        """Start the servers in a drawn order, so that any quorum may be the first."""
        nodes = [*self.rig.nodes.values()]
        self.rng.shuffle(nodes)
        for node in nodes:
            node.start()
            await asyncio.sleep(self.rng.choice((0.0, self.rng.uniform(0, 0.6))))

    async def _pause(self, server: int) -> None:
        node = self.rig.nodes[server]
        node.pause()
        await self._last()
        node.resume()

    async def _isolate(self, server: int) -> None:
        clients = self.rig.client_hosts if self.rng.random() < 0.5 else []
        links = self.rig.split([server], to_clients=clients)
        await self._last()
        self._heal(links)

    async def _halves(self, server: int) -> None:
        others = [each for each in self.rig.shape.servers if each != server]
        side = [server, *self.rng.sample(others, (len(others) + 1) // 2 - 1 + len(others) % 2)]
        links = self.rig.split(side[: max(1, len(side) // 2 + self.rng.randrange(2))])
        await self._last()
        self._heal(links)

    async def _one_way(self, server: int) -> None:
        other = self.rng.choice([each for each in self.rig.shape.servers if each != server])
        link = (name_of(server), name_of(other))
        if self.rng.random() < 0.5:
            link = (link[1], link[0])
        self.rig.cut(*link)
        await self._last()
        self._heal([link])

    def _heal(self, links: list[tuple[str, str]]) -> None:
        for link in links:
            self.rig.heal(*link)

    async def _reset(self, server: int) -> None:
        """End the connections of a server with another server, or with a client."""
        names = [name_of(each) for each in self.rig.shape.servers if each != server]
        other = self.rng.choice([*names, *self.rig.client_hosts])
        self.rig.world.network.reset(name_of(server), other)

    async def _slow_link(self, server: int) -> None:
        other = self.rng.choice([each for each in self.rig.shape.servers if each != server])
        link = (name_of(server), name_of(other))
        if self.rng.random() < 0.5:
            link = (link[1], link[0])
        self.rig.slow(*link, self.rng.uniform(0.01, 0.3))
        await self._last()
        self.rig.slow(*link, 0.0)

    async def _slow_disk(self, server: int) -> None:
        disk = self.rig.nodes[server].disk
        disk.slow(self.rng.uniform(0.002, 0.06))
        await self._last()
        disk.slow(0.0)

    async def _failed_sync(self, server: int) -> None:
        self.rig.nodes[server].disk.fail_fsync(1)
        await self._last()
        self.rig.nodes[server].disk.fail_fsync(0)

    async def _full_disk(self, server: int) -> None:
        self.rig.nodes[server].disk.fill(self.rng.randrange(200))
        await self._last()
        self.rig.nodes[server].disk.free()

    async def _clock(self, server: int) -> None:
        clock = self.rig.nodes[server].host.clock
        clock.jump(self.rng.uniform(-5, 5))
        clock.drift(self.rng.uniform(0.9, 1.1))
        await self._last()
        clock.drift(1.0)
