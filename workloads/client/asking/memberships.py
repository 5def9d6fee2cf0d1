"""Groups whose members stay, or that take their time in a rebalance.

One process is all members of its groups. A static member joins a second time under its instance id,
which gives it another member id without a rebalance, and stays (KIP-345). In later rounds, when
another broker may have become the coordinator, it sends heartbeats under the new id and under the
former one. In other rounds, two members with different timeouts join a group, the slower one after
the shorter timeout or after both (KIP-62), members send heartbeats and no SyncGroup (KAFKA-12890),
or one of them joins again with another subscription, and in some groups waits for the other one for
longer than its session. At the end they leave one after the other, or a tool removes them at once
(KIP-345).
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup

from workloads.client.asking.group_requests import RemoveRequest
from workloads.client.asking.groups import (
    BEAT_EVERY_S,
    TIMEOUTS,
    Groups,
    Joined,
    Timeouts,
    protocols,
)
from workloads.client.asking.requests import Place

STAYS: Final = Timeouts(session_ms=60_000, rebalance_ms=700)
"""The timeouts of a member that stays: a fault is over before its session expires."""
SLOW: Final = Timeouts(session_ms=6000, rebalance_ms=1500)
FAST: Final = Timeouts(session_ms=6000, rebalance_ms=300)
PATIENT: Final = Timeouts(session_ms=600, rebalance_ms=3000)
"""Not all brokers accept sessions as short as these."""
PATIENT_BEATS: Final = 8
"""How many heartbeats a member sends before it joins again: for longer than such a session."""
PATIENT_EVERY: Final = 4
"""In one of so many groups, a rebalance lasts for longer than the sessions of its members."""
WAIT_BEATS: Final = (4, 4, 15)
"""How many heartbeats the slow member sends before it joins, drawn from these: until after the
timeout of the fast one, or after its own, too."""
IDLE_BEATS: Final = 8
"""How many heartbeats members send without a SyncGroup: for longer than their timeout."""
SUPPORTED: Final = (
    protocols("range"),
    protocols("range"),
    protocols("range", "roundrobin"),
    protocols("roundrobin", "range"),
    protocols("roundrobin"),
)
"""What a static member supports when it joins again, drawn from these: sometimes not what it had
supported (its group has no other members)."""
CHANGES: Final = 1_000_000
"""The number of different subscriptions that are drawn."""
STATIC_P: Final = 0.3
"""How often the slow member is a static one, which is not removed by a rebalance."""
STAYS_P: Final = 0.5
"""How often a round is one with a static member that stays."""
REMOVED_EVERY: Final = 3
"""In one of so many groups, a tool removes the members at once."""
KEPT: Final = 4
"""How many groups with static members a process has."""
VISITS: Final = 3
"""How many of these groups send heartbeats in a later round."""
NEW_P: Final = 0.3
"""How often a new group begins, in relation to all rounds."""
AGAIN_P: Final = 0.6
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
        if self._rng.random() >= STAYS_P:
            story = self._rng.choice((self._slow, self._unsynced, self._resubscribed))
            self._said = [story.__name__.strip("_")]
            self._new_group()
            await story()
        elif not self._kept or self._rng.random() < NEW_P:
            self._said = ["new"]
            await self._begin()
        else:
            self._said = ["later"]
            for each in self._rng.sample(self._kept, min(VISITS, len(self._kept))):
                await self._later(each)
        return ", ".join(self._said)

    def _new_group(self) -> None:
        self._count += 1
        self._use(f"{self._name}-{self._count}")

    async def _begin(self) -> None:
        """A static member joins a new group twice, and stays."""
        self._new_group()
        instance = f"{self._group}-static"
        former = await self._join(instance=instance, timeouts=STAYS)
        if former.code or await self._sync(former, instance):
            return
        joined = await self._rejoin(instance)
        if not joined.code and not await self._sync(joined, instance):
            static = _Static(self._group, joined, former)
            self._kept = [*self._kept[1 - KEPT :], static]
            await self._beats(static)

    async def _rejoin(self, instance: str) -> Joined:
        """Let a static member join again, sometimes with other protocols."""
        supports = self._rng.choice(SUPPORTED)
        return await self._join(instance=instance, timeouts=STAYS, supports=supports)

    async def _beats(self, static: _Static) -> int:
        """Send a heartbeat under the former member id and one under the new one."""
        await self._beat(static.former, static.instance)
        return await self._beat(static.joined, static.instance)

    async def _later(self, static: _Static) -> None:
        self._use(static.group)
        refused = await self._beats(static)
        if not refused and self._rng.random() >= AGAIN_P:
            return
        again = await self._rejoin(static.instance)
        if again.code:
            return
        static.former, static.joined = static.joined, again
        if not await self._sync(again, static.instance):
            await self._beats(static)

    async def _pair(
        self, first: Timeouts, second: Timeouts, beats: int, instance: str | None = None
    ) -> tuple[Joined, Joined] | None:
        """Return two members that have joined; the first one sends heartbeats before.

        Return None if a request was refused. instance: the instance id of the first member.
        """
        one = await self._join(instance=instance, timeouts=first)
        if one.code or await self._sync(one, instance):
            return None
        joining = asyncio.ensure_future(self._join(timeouts=second))
        try:
            for _ in range(beats):
                await asyncio.sleep(BEAT_EVERY_S)
                await self._beat(one, instance)
            again = await self._join(one.member, instance, ConnectionGroup.COORDINATION, first)
            other = await joining
        finally:
            joining.cancel()
        return None if again.code or other.code else (again, other)

    async def leave(self, *members: str) -> None:
        """Let members leave one after the other; in some groups, a tool removes them at once."""
        if len(members) < 2 or self._count % REMOVED_EVERY:
            await super().leave(*members)
            return
        removed = [(member, None) for member in members]
        answer = await self._send(RemoveRequest(self._group, removed))
        for _, _, code in answer.members:
            self._note("remove", code)

    async def _slow(self) -> None:
        """A rebalance waits for its slowest member, until its timeout has passed."""
        beats = self._rng.choice(WAIT_BEATS)
        instance = f"{self._group}-static" if self._rng.random() < STATIC_P else None
        pair = await self._pair(SLOW, FAST, beats, instance)
        if pair is not None:
            await self._sync(pair[0], instance)
            await self._sync(pair[1])
            await self.leave(*(member.member for member in pair))

    async def _unsynced(self) -> None:
        """Members send heartbeats in place of SyncGroup: both of them, or all but the leader."""
        pair = await self._pair(TIMEOUTS, TIMEOUTS, 1)
        if pair is None:
            return
        if self._rng.random() < 0.5:
            await self._sync(pair[0])
        for _ in range(IDLE_BEATS):
            await asyncio.sleep(BEAT_EVERY_S)
            for member in pair:
                await self._beat(member)
        await self.leave(*(member.member for member in pair))

    async def _resubscribed(self) -> None:
        """A member joins a stable group again, with another subscription or with the same one.

        It is sometimes the leader, which begins a rebalance in both cases. In some groups, it waits
        for the other member for longer than its session.
        """
        is_patient = self._count % PATIENT_EVERY == 0
        timeouts = PATIENT if is_patient else TIMEOUTS
        pair = await self._pair(timeouts, timeouts, 1)
        if pair is None and is_patient:
            is_patient, timeouts = False, TIMEOUTS
            pair = await self._pair(timeouts, timeouts, 1)
        if pair is None or any([await self._sync(each) for each in pair]):
            return
        one, other = self._rng.sample(pair, 2)
        data = str(self._rng.randrange(CHANGES)).encode() if self._rng.random() < 0.7 else b""
        supports = protocols("range", data=data)
        joining = asyncio.ensure_future(
            self._join(one.member, timeouts=timeouts, supports=supports)
        )
        try:
            await asyncio.sleep(BEAT_EVERY_S)
            if not await self._beat(other):
                self._said.append("no rebalance")
            for _ in range(PATIENT_BEATS if is_patient else 0):
                if joining.done():
                    break
                await asyncio.sleep(BEAT_EVERY_S)
                await self._beat(other)
            again = await self._join(
                other.member, group=ConnectionGroup.COORDINATION, timeouts=timeouts
            )
            changed = await joining
        finally:
            joining.cancel()
        if not again.code and not changed.code:
            await self._sync(again)
            await self._sync(changed)
        await self.leave(one.member, other.member)
