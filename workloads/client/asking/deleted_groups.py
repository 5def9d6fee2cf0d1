"""Groups without members that are deleted, and whose offsets are requested afterwards (KIP-229).

One process commits offsets for a new group, deletes the group and asks for its offset: at once, and
again in later rounds, when another broker may have become the group's coordinator. Sometimes the
group commits again after its deletion. Each commit has an offset of its own, which shows to which
commit an answer belongs.
"""

import itertools
import random
from typing import Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code

from workloads.client.asking.group_offsets import GroupOffsets
from workloads.client.asking.requests import Place

KEPT: Final = 8
"""Of how many deleted groups the offsets are still requested."""
NEW_P: Final = 0.4
"""How often a new group is deleted, in relation to all rounds."""
READS: Final = 3
"""How many groups are asked for their offsets in one of the other rounds."""
AGAIN_P: Final = 0.2
"""How often a group commits again after its deletion."""


class _Deleted(NamedTuple):
    group: str
    place: Place


class DeletedGroups:
    """The groups of one process; ``ask`` deletes one or asks for offsets of former ones."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str) -> None:
        """``name``: with which the names of the groups begin."""
        self._offsets = GroupOffsets(client)
        self._rng = rng
        self._name = name
        self._count = 0
        self._next = itertools.count(1)
        self._kept: list[_Deleted] = []
        self._said: list[str] = []

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Run a round; ``place`` is the partition whose offset a new group commits."""
        self._said = []
        if not self._kept or self._rng.random() < NEW_P:
            await self._delete_one(place)
        else:
            for each in self._rng.sample(self._kept, min(READS, len(self._kept))):
                await self._read(each)
        return ", ".join(self._said)

    def _note(self, what: str, code: int) -> int:
        self._said.append(f"{what}: {for_code(code).__name__}")
        return code

    async def _delete_one(self, place: Place) -> None:
        one = _Deleted(f"{self._name}-{self._count}", place)
        self._count += 1
        if await self._commit(one):
            return
        if self._note(f"delete {one.group}", await self._offsets.delete(one.group)):
            return
        self._kept = [*self._kept[1 - KEPT :], one]
        await self._read(one)
        if self._rng.random() < AGAIN_P:
            await self._commit(one)
            await self._read(one)

    async def _commit(self, one: _Deleted) -> int:
        offset = next(self._next)
        code = await self._offsets.commit(one.group, one.place, offset)
        return self._note(f"commit {one.group} {offset}", code)

    async def _read(self, one: _Deleted) -> int:
        offset, code = await self._offsets.fetch(one.group, one.place)
        return self._note(f"read {one.group} {offset}", code)
