"""Groups whose members stay, so that later coordinators have them, too.

One process is all members of its groups. A static member joins a second time under its instance id,
which gives it another member id without a rebalance, and stays (KIP-345). In later rounds, when
another broker may have become the coordinator, it sends heartbeats under the new id and under the
former one.
"""

import random
from dataclasses import dataclass
from typing import Final

from aiokafka.client import AIOKafkaClient

from workloads.client.asking.groups import Groups, Joined, Timeouts
from workloads.client.asking.requests import Place

STAYS: Final = Timeouts(session_ms=60_000, rebalance_ms=700)
"""The timeouts of a member that stays: a fault is over before its session expires."""
KEPT: Final = 4
"""How many groups with static members a process has."""
NEW_P: Final = 0.3
"""How often a new group begins, in relation to all rounds."""
AGAIN_P: Final = 0.4
"""How often a static member joins again in a round, although it is still a member."""


@dataclass
class _Static:
    group: str
    joined: Joined
    former: Joined

    @property
    def instance(self) -> str:
        return f"{self.group}-static"


class Memberships(Groups):
    """The groups of one process; ``ask`` runs one story, and returns it as text."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str) -> None:
        """``name``: with which the names of the groups begin."""
        super().__init__(client, rng, name)
        self._name = name
        self._count = 0
        self._kept: list[_Static] = []

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Run a round."""
        if not self._kept or self._rng.random() < NEW_P:
            self._said = ["new"]
            await self._begin()
        else:
            self._said = ["later"]
            await self._later(self._rng.choice(self._kept))
        return ", ".join(self._said)

    async def _begin(self) -> None:
        """A static member joins a new group twice, and stays."""
        self._count += 1
        self._group = f"{self._name}-{self._count}"
        instance = f"{self._group}-static"
        former = await self._join(instance=instance, timeouts=STAYS)
        if former.code or await self._sync(former, instance):
            return
        joined = await self._join(instance=instance, timeouts=STAYS)
        if not joined.code:
            static = _Static(self._group, joined, former)
            self._kept = [*self._kept[1 - KEPT :], static]
            await self._beats(static)

    async def _beats(self, static: _Static) -> int:
        """Send a heartbeat under the former member id and one under the new one."""
        await self._beat(static.former, static.instance)
        return await self._beat(static.joined, static.instance)

    async def _later(self, static: _Static) -> None:
        self._group = static.group
        refused = await self._beats(static)
        if not refused and self._rng.random() >= AGAIN_P:
            return
        again = await self._join(instance=static.instance, timeouts=STAYS)
        if again.code:
            return
        static.former, static.joined = static.joined, again
        if not await self._sync(again, static.instance):
            await self._beats(static)
