"""Members of a group of their own that act at the wrong time, or do not act.

One process is all members of its group, and asks its coordinator what no consumer library asks: it
commits before its assignment is known, sends heartbeats and does not join again, joins a second
time under the name of a static member, also before the leader has assigned, and continues with an
old generation. Its sessions last longer than its rebalances. At the end it leaves, or its group is
deleted with members in it.
"""

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import for_code
from aiokafka.protocol.admin import DeleteGroupsRequest
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from workloads.client.asking.group_requests import (
    CommitRequest,
    HeartbeatRequest,
    Membership,
    RemoveRequest,
)
from workloads.client.asking.requests import Place

BEATS: Final = 4
BEAT_EVERY_S: Final = 0.15
LEAVES_P: Final = 0.5
"""How often a static member asks to leave that was replaced by another one (KIP-345)."""
_MEMBER_ID_REQUIRED: Final = 79


class Timeouts(NamedTuple):
    """The timeouts of a member."""

    session_ms: int
    rebalance_ms: int
    """How long a rebalance waits for it: a member that does not join again in time is removed."""


TIMEOUTS: Final = Timeouts(6000, 700)

Protocols = tuple[tuple[str, bytes], ...]
"""The assignors that a member supports, the preferred one first, each with its subscription."""
TOPICLESS: Final = struct.pack(">hi", 1, 0)
"""The beginning of a subscription to no topic; data of the assignor follow, after their length."""


def protocols(*names: str, data: bytes = b"") -> Protocols:
    """Return these assignors with a subscription to no topic."""
    subscription = TOPICLESS + struct.pack(">i", len(data)) + data
    return tuple((name, subscription) for name in names)


RANGE: Final = protocols("range")


class Joined(NamedTuple):
    """The answer to a JoinGroup."""

    code: int
    generation: int
    member: str
    leader: str
    members: tuple[str, ...]


class Groups:
    """The members of one process; ``ask`` runs one story, and returns it as text."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str) -> None:
        self._client = client
        self._rng = rng
        self._group = name
        self._node: int | None = None
        self._said: list[str] = []

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Run a story that is drawn at random; ``place`` is the partition whose offset counts."""
        stories = (
            self._early_commit,
            self._no_rejoin,
            self._static_twice,
            self._static_before_sync,
            self._old_generation,
        )
        story: Callable[[Place], Awaitable[None]] = self._rng.choice(stories)
        self._said = [story.__name__.strip("_")]
        self._use(self._group)
        await story(place)
        return ", ".join(self._said)

    async def enter(self, said: list[str], instance: str | None = None) -> Joined | None:
        """Join and sync, and add the answers to ``said``; None if a request was refused."""
        self._said = said
        self._use(self._group)
        joined = await self._join(instance=instance)
        return None if joined.code or await self._sync(joined, instance) else joined

    async def _send(self, request: Any) -> Any:
        return await self._apart(request, ConnectionGroup.COORDINATION)

    async def _apart(self, request: Any, group: int) -> Any:
        """Send over another connection, because a JoinGroup blocks the requests behind it."""
        return await self._client.send(await self._coordinator(), request, group=group)

    def _use(self, group: str) -> None:
        """Go on with this group; the next request looks up its coordinator again."""
        self._group, self._node = group, None

    async def _coordinator(self) -> int:
        """Return the coordinator, which is looked up once for a story.

        A lookup would wait behind a JoinGroup that waits for the other members.
        """
        if self._node is None:
            kind = CoordinationType.GROUP
            self._node = int(await self._client.coordinator_lookup(kind, self._group))
        return self._node

    def _note(self, what: str, code: int) -> int:
        self._said.append(f"{what}: {for_code(code).__name__}")
        return code

    async def _join(
        self,
        member: str = "",
        instance: str | None = None,
        group: int = ConnectionGroup.DEFAULT,
        timeouts: Timeouts = TIMEOUTS,
        supports: Protocols = RANGE,
    ) -> Joined:
        request = JoinGroupRequest(
            self._group,
            timeouts.session_ms,
            timeouts.rebalance_ms,
            member,
            instance,
            "consumer",
            list(supports),
        )
        answer = await self._apart(request, group)
        found = Joined(
            answer.error_code,
            answer.generation_id,
            answer.member_id,
            answer.leader_id,
            tuple(row[0] for row in answer.members),
        )
        if found.code == _MEMBER_ID_REQUIRED:
            return await self._join(found.member, instance, group, timeouts, supports)
        self._note(f"join {found.generation}", found.code)
        return found

    async def _sync(self, joined: Joined, instance: str | None = None) -> int:
        assigned = [(member, member.encode()) for member in joined.members]
        request = SyncGroupRequest(
            self._group, joined.generation, joined.member, instance, assigned
        )
        return self._note("sync", (await self._send(request)).error_code)

    async def _beat(self, joined: Joined, instance: str | None = None) -> int:
        membership = Membership(self._group, joined.generation, joined.member, instance)
        return self._note("beat", (await self._send(HeartbeatRequest(membership))).error_code)

    async def _commit(self, joined: Joined, place: Place, instance: str | None = None) -> int:
        membership = Membership(self._group, joined.generation, joined.member, instance)
        offset = self._rng.randint(0, 1000)
        answer = await self._send(CommitRequest(membership, place, offset))
        ((_, ((_, code),)),) = answer.topics
        return self._note("commit", code)

    async def leave(self, *members: str) -> None:
        """Let members leave the group one after the other."""
        for member in members:
            answer = await self._send(LeaveGroupRequest(self._group, member))
            self._note("leave", answer.error_code)

    async def _end(self, *members: str) -> None:
        """Leave; sometimes ask before and after that for the deletion of the group."""
        deletes = self._rng.random() < 0.5
        if deletes:
            await self._delete()
        await self.leave(*members)
        if deletes:
            await self._delete()

    async def _delete(self) -> None:
        answer = await self._send(DeleteGroupsRequest([self._group]))
        self._note("delete", answer.results[0][1])

    async def _early_commit(self, place: Place) -> None:
        one = await self._join()
        if one.code:
            return
        await self._commit(one, place)
        await self._beat(one)
        await self._sync(one)
        await self._commit(one, place)
        await self._end(one.member)

    async def _no_rejoin(self, place: Place) -> None:
        one = await self._join()
        if one.code or await self._sync(one):
            return
        joining = asyncio.ensure_future(self._join(group=ConnectionGroup.DEFAULT))
        try:
            for _ in range(BEATS):
                await asyncio.sleep(BEAT_EVERY_S)
                if self._rng.random() < 0.5:
                    await self._commit(one, place)
                await self._beat(one)
            other = await joining
        finally:
            joining.cancel()
        await self._beat(one)
        await self._commit(one, place)
        if not other.code:
            await self._sync(other)
            await self._end(other.member)

    async def _static_twice(self, place: Place) -> None:
        instance = f"{self._group}-static"
        one = await self._join(instance=instance)
        if one.code or await self._sync(one, instance):
            return
        other = await self._join(instance=instance)
        if other.code:
            return
        await self._beat(one, instance)
        await self._commit(one, place, instance)
        if self._rng.random() < LEAVES_P:
            answer = await self._send(RemoveRequest(self._group, [(one.member, instance)]))
            self._note("leave of the first", answer.error_code or answer.members[0][2])
        await self._beat(other, instance)
        await self._end(other.member)

    async def _static_before_sync(self, place: Place) -> None:
        """A static member comes again while its group waits for the leader's assignments."""
        instance = f"{self._group}-static"
        one = await self._join()
        if one.code or await self._sync(one):
            return
        joining = asyncio.ensure_future(self._join(instance=instance))
        try:
            await asyncio.sleep(BEAT_EVERY_S)
            leader = await self._join(one.member, group=ConnectionGroup.COORDINATION)
            other = await joining
        finally:
            joining.cancel()
        if leader.code or other.code:
            return
        late = await self._join(instance=instance)
        if late.code:
            return
        await self._sync(leader)
        await self._sync(late, instance)
        await self._commit(late, place, instance)
        await self._end(leader.member, late.member)

    async def _old_generation(self, place: Place) -> None:
        one = await self._join()
        if one.code or await self._sync(one):
            return
        other = await self._join(one.member)
        if other.code:
            return
        await self._beat(one)
        await self._commit(one, place)
        await self._sync(one)
        await self._sync(other)
        await self._commit(other, place)
        await self._end(other.member)
