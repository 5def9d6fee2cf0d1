"""A group whose offsets are committed in transactions, and requested meanwhile (KIP-447).

One process has a group and a producer of its own. It commits offsets in a transaction, some of them
without one in between, asks for the committed offset before and after the transaction ends, with
and without ``require_stable``, commits again when the transaction has ended or its producer was
replaced, and asks for the deletion of the group while offsets wait for their transaction. It also
commits as a member of the group, and under the names of members that the group does not have, and
asks for the offsets of all partitions.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.transaction import AddOffsetsToTxnRequest, TxnOffsetCommitRequest

from workloads.client.asking.group_offsets import GroupOffsets
from workloads.client.asking.group_requests import Membership
from workloads.client.asking.groups import Groups
from workloads.client.asking.offset_requests import TxnCommitRequest
from workloads.client.asking.producer import ATTEMPTS, BACKOFF_S, Producer
from workloads.client.asking.requests import Place

UNSTABLE: Final = 88
OFFSET_MAX: Final = 1000
LATER_S: Final = 1.0
"""How much later than the end of a transaction offsets are committed in it, at most."""

Who = tuple[int, int]
"""A producer id and its epoch."""


class StableOffsets(Producer):
    """The group of one process; ``ask`` runs one story, and returns it as text."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str) -> None:
        """``name``: that of the group, and the transactional id."""
        super().__init__(client, rng, name)
        self._group = name
        self._members = Groups(client, rng, name)
        self._offsets = GroupOffsets(client)

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Run a story that is drawn at random; ``place`` is the partition whose offset counts."""
        stories = (
            self._while_open,
            self._while_open,
            self._late,
            self._replaced,
            self._replaced_meanwhile,
            self._deleted,
            self._as_member,
            self._of_several,
        )
        story: Callable[[Place], Awaitable[None]] = self._rng.choice(stories)
        self._said = [story.__name__.strip("_")]
        await story(place)
        return ", ".join(self._said)

    async def _begin(self, place: Place) -> Who | None:
        """Begin a transaction with an offset of the group; None if a request was refused."""
        who = await self._init()
        if who is None or await self._add_offsets(who) or await self._commit(who, place):
            return None
        return who

    async def _add_offsets(self, who: Who) -> int:
        answer = await self._when_free(AddOffsetsToTxnRequest(self._name, *who, self._group))
        return self._note("add", answer.error_code)

    async def _commit(self, who: Who, place: Place) -> int:
        """Commit in a transaction, as a client that knows leader epochs or as an older one."""
        if self._rng.random() < 0.5:
            return await self._commit_as(Membership(self._group, -1, "", None), who, place)
        offset = self._rng.randint(0, OFFSET_MAX)
        topics = [(place.topic, [(place.partition, offset, "")])]
        request = TxnOffsetCommitRequest(self._name, self._group, *who, topics)
        answer = await self._offsets.send(self._group, request)
        ((_, ((_, code),)),) = answer.errors
        return self._note(f"offset {offset}", code)

    async def _commit_as(self, member: Membership, who: Who, place: Place) -> int:
        offset = self._rng.randint(0, OFFSET_MAX)
        request = TxnCommitRequest(self._name, who, member, place, offset)
        answer = await self._offsets.send(self._group, request)
        ((_, ((_, code, _),), _),) = answer.errors
        said = f"{member.member or 'nobody'} in {member.generation}"
        return self._note(f"offset {offset} as {said}", code)

    async def _commit_alone(self, place: Place) -> int:
        """Commit without a transaction, as a tool that resets offsets does."""
        offset = self._rng.randint(0, OFFSET_MAX)
        code = await self._offsets.commit(self._group, place, offset)
        return self._note(f"alone {offset}", code)

    async def _read(self, place: Place, *, stable: bool = True) -> int:
        offset, code = await self._offsets.fetch(self._group, place, stable=stable)
        return self._note(f"read {offset}" if stable else f"read unstable {offset}", code)

    async def _settled(self, place: Place) -> None:
        """Ask until the offset is stable, as a consumer does before it begins to read."""
        for _ in range(ATTEMPTS):
            if await self._read(place) != UNSTABLE:
                return
            await asyncio.sleep(BACKOFF_S)

    async def _while_open(self, place: Place) -> None:
        if self._rng.random() < 0.5:
            await self._commit_alone(place)
        who = await self._begin(place)
        if who is None:
            return
        await self._read(place)
        if self._rng.random() < 0.3:
            await self._commit_alone(place)
        await self._read(place, stable=self._rng.random() < 0.5)
        if not await self._end(who, commit=self._rng.random() < 0.7):
            await self._settled(place)

    async def _late(self, place: Place) -> None:
        who = await self._begin(place)
        if who is None or await self._end(who, commit=self._rng.random() < 0.5):
            return
        await asyncio.sleep(self._rng.uniform(0.0, LATER_S))
        await self._commit(who, place)
        await self._settled(place)

    async def _replaced(self, place: Place) -> None:
        who = await self._begin(place)
        if who is None or await self._init() is None:
            return
        await self._commit(who, place)
        await self._settled(place)

    async def _replaced_meanwhile(self, place: Place) -> None:
        """Commit as the producer that was replaced, while its successor has a transaction open."""
        former = await self._begin(place)
        who = None if former is None else await self._begin(place)
        if former is None or who is None:
            return
        await self._commit(former, place)
        if not await self._end(who, commit=self._rng.random() < 0.7):
            await self._settled(place)

    async def _as_member(self, place: Place) -> None:
        """Commit as a member of the group, and under names that are not those of a member."""
        instance = f"{self._group}-static" if self._rng.random() < 0.5 else None
        former = await self._members.enter(self._said, instance)
        member = former
        if former is not None and instance is not None:
            member = await self._members.enter(self._said, instance)
        if former is None or member is None:
            return
        who = await self._init()
        if who is not None and not await self._add_offsets(who):
            right = Membership(self._group, member.generation, member.member, instance)
            for sender in self._senders(right, former.member):
                await self._commit_as(sender, who, place)
            if not await self._end(who, commit=self._rng.random() < 0.7):
                await self._settled(place)
        await self._members.leave(member.member)

    def _senders(self, right: Membership, former: str) -> list[Membership]:
        """Return a member and others that it could be taken for, in the order of their commits.

        former: the member that had the instance id before; the same one in a group without it.
        """
        senders = [
            right,
            right._replace(generation=right.generation - 1),
            right._replace(member=f"{right.member}-unknown", instance=None),
        ]
        if former != right.member:
            senders += [right._replace(member=former), right._replace(member=former, instance=None)]
        if self._rng.random() < 0.5:
            senders.append(Membership(self._group, -1, "", None))
        return self._rng.sample(senders, len(senders))

    async def _of_several(self, place: Place) -> None:
        """Ask for all offsets of this group and of one that has none, in one request (KIP-709)."""
        twin = f"{self._group}-twin"
        known = self._client.cluster.partitions_for_topic(place.topic) or {place.partition}
        stable, other = self._rng.sample((True, False), 2)
        self._note("read all", await self._offsets.fetch_all(self._group, twin, stable=stable))
        for partition in self._rng.sample(sorted(known), min(2, len(known))):
            await self._commit_alone(Place(place.topic, partition))
        self._note("read all", await self._offsets.fetch_all(self._group, twin, stable=other))

    async def _deleted(self, place: Place) -> None:
        who = await self._begin(place)
        if who is None:
            return
        await self._delete()
        await self._read(place)
        if not await self._end(who, commit=True):
            await self._settled(place)
            await self._delete()

    async def _delete(self) -> int:
        return self._note("delete", await self._offsets.delete(self._group))
