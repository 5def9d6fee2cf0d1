"""A producer that sends what a correct one never sends, in transactions of its own.

It writes to a topic of its own, so that no reader of the workload sees its records. It adds several
partitions in requests that are in flight at the same time, sends batches without waiting for the
one before, begins an epoch with a later sequence number than 0, names epochs that it never had or
has no longer, and ends a transaction twice. It names its producer id for a transactional id that
the coordinator does not know, as after ``transactional.id.expiration.ms``, and twice for its own,
as after a lost response (KIP-360). It sends batches again some time later, and new ones when the
transaction has ended (KIP-890), or while it ends: then one request has batches of partitions in
which the transaction has begun, and of others (KAFKA-14884).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest

from workloads.client.asking.own_topics import append
from workloads.client.asking.producer import TIMEOUT_MS, Producer
from workloads.client.asking.requests import Place
from workloads.client.asking.txn_requests import InitRequest, batch

PARTITIONS: Final = 4
"""The number of partitions of its topic: of three brokers, one leads several."""
FOREIGN: Final = 1000
"""How far an epoch that the producer never had is above its own."""
OVERTAKEN_S: Final = 0.005
"""How much later than the end of its transaction an overtaken batch is sent, at most."""
REPEAT_S: Final = 2.0
"""How much later batches are sent again, at most."""
SOON: Final = 4
"""The exponent of the distribution of a late batch's delay; larger ones make it shorter."""

Topic = Callable[[], Awaitable[str]]
"""Creates the topic, unless it exists, and returns its name."""


class Transactions(Producer):
    """The producer of one process; ``ask`` runs one story, and returns it as text."""

    def __init__(self, client: AIOKafkaClient, rng: random.Random, name: str, topic: Topic) -> None:
        super().__init__(client, rng, name)
        self._topic = topic
        self._sequences: dict[int, int] = {}

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Run a story that is drawn at random."""
        stories = (
            *(self._several_in_flight, self._foreign_epochs, self._gap, self._end_twice),
            *(self._forgotten, self._bump, self._repeat, self._late),
            self._overtaken,
        )
        story: Callable[[str], Awaitable[None]] = self._rng.choice(stories)
        self._said = [story.__name__.strip("_")]
        await story(await self._topic())
        return ", ".join(self._said)

    async def _init(self, producer_id: int = -1, epoch: int = -1) -> tuple[int, int] | None:
        self._sequences.clear()
        return await super()._init(producer_id, epoch)

    async def _add(self, who: tuple[int, int], topic: str, *partitions: int) -> int:
        request = AddPartitionsToTxnRequest(self._name, *who, [(topic, list(partitions))])
        answer = await self._when_free(request, _first_error)
        return self._note(f"add {partitions}", _first_error(answer))

    async def _produce(self, who: tuple[int, int], place: Place, sequence: int, count: int) -> int:
        data = batch(*who, sequence, count, transactional=True)
        [code] = await self._append(place, {place.partition: data})
        return self._note(f"batch {sequence}", code)

    async def _append(self, place: Place, batches: Mapping[int, bytes]) -> list[int]:
        return await append(self._client, place, batches, transactional_id=self._name)

    async def _batches(self, who: tuple[int, int], place: Place) -> list[tuple[int, int]]:
        """Send some batches in a row, each before the one before it is answered.

        Returns the first sequence number and the number of records of each.
        """
        sending, sent = [], []
        for _ in range(self._rng.randint(1, 4)):
            count = self._rng.randint(1, 3)
            sequence = self._sequences.get(place.partition, 0)
            self._sequences[place.partition] = sequence + count
            sent.append((sequence, count))
            sending.append(asyncio.ensure_future(self._produce(who, place, sequence, count)))
            await asyncio.sleep(0)
        await asyncio.gather(*sending)
        return sent

    async def _several_in_flight(self, topic: str) -> None:
        who = await self._init()
        if who is None:
            return
        wanted = self._rng.sample(range(PARTITIONS), self._rng.randint(2, PARTITIONS))
        codes = await asyncio.gather(*(self._add(who, topic, each) for each in wanted))
        if any(codes):
            return
        await asyncio.gather(*(self._batches(who, Place(topic, each)) for each in wanted))
        await self._end(who, commit=self._rng.random() < 0.5)

    async def _foreign_epochs(self, topic: str) -> None:
        who = await self._init()
        if who is None:
            return
        own, epoch = who
        others = [(own, epoch + FOREIGN), (own, epoch - 1), (own + 7, epoch)]
        foreign = self._rng.choice([each for each in others if each[1] >= 0])
        if self._rng.random() < 0.5:
            await self._add(foreign, topic, 0)
        if self._rng.random() < 0.3:
            answer = await self._send(InitRequest(self._name, TIMEOUT_MS, *foreign))
            self._note(f"init as {foreign[1] - epoch:+d}", answer.error_code)
            if not answer.error_code:
                return
        if await self._add(who, topic, 0):
            return
        await self._batches(who, Place(topic, 0))
        await self._produce(foreign, Place(topic, 0), 0, 1)
        await self._end(foreign, commit=True)
        await self._end(who, commit=False)

    async def _gap(self, topic: str) -> None:
        who = await self._init()
        if who is None or await self._add(who, topic, 1):
            return
        await self._produce(who, Place(topic, 1), self._rng.randint(1, 9), 1)
        await self._batches(who, Place(topic, 1))
        after = self._sequences[1]
        await self._produce(who, Place(topic, 1), after + self._rng.randint(1, 9), 1)
        await self._end(who, commit=True)

    async def _end_twice(self, topic: str) -> None:
        who = await self._init()
        if who is None or await self._add(who, topic, 2):
            return
        await self._batches(who, Place(topic, 2))
        commit = self._rng.random() < 0.5
        await self._end(who, commit=commit)
        await self._end(who, commit=commit)
        await self._end(who, commit=not commit)

    async def _forgotten(self, topic: str) -> None:
        """Name the producer id and epoch of another transactional id; a fresh id is returned."""
        before = await self._init()
        if before is None:
            return
        self._rename()
        who = await self._init(*before)
        if who is None or await self._add(who, topic, 0):
            return
        await self._batches(who, Place(topic, 0))
        await self._end(who, commit=True)

    async def _bump(self, topic: str) -> None:
        """Ask for the epoch after its own, as after an error, and again without the response."""
        who = await self._init()
        if who is None:
            return
        await self._init(*who)
        after = await self._init(*who)
        if after is None or await self._add(after, topic, 2):
            return
        await self._batches(after, Place(topic, 2))
        await self._end(after, commit=True)

    async def _repeat(self, topic: str) -> None:
        """Send batches again, as after a lost response, and continue."""
        who = await self._init()
        if who is None or await self._add(who, topic, 1):
            return
        place = Place(topic, 1)
        sent = await self._batches(who, place)
        await asyncio.sleep(self._rng.uniform(0.0, REPEAT_S))
        for sequence, count in self._rng.sample(sent, self._rng.randint(1, len(sent))):
            await self._produce(who, place, sequence, count)
        await self._batches(who, place)
        await self._end(who, commit=True)

    async def _late(self, topic: str) -> None:
        """Send a batch after the end of its transaction, as if it had been delayed on its way.

        The markers of other partitions may be on their way then.
        """
        who = await self._init()
        wanted = self._rng.sample(range(PARTITIONS), self._rng.randint(1, PARTITIONS))
        if who is None or await self._add(who, topic, *wanted):
            return
        place = Place(topic, wanted[0])
        await self._batches(who, place)
        if await self._end(who, commit=self._rng.random() < 0.5):
            return
        await asyncio.sleep(REPEAT_S * self._rng.random() ** SOON)
        await self._produce(who, place, self._sequences[place.partition], 1)

    async def _overtaken(self, topic: str) -> None:
        """Let the transaction end while a batch waits to be verified, and another one with it."""
        who = await self._init()
        if who is None or await self._add(who, topic, *range(PARTITIONS)):
            return
        place = Place(topic, self._rng.randrange(PARTITIONS))
        await self._batches(who, place)
        leaders = [
            self._client.cluster.leader_for_partition(TopicPartition(topic, number))
            for number in range(PARTITIONS)
        ]
        batches = {
            number: batch(*who, self._sequences.get(number, 0), 1, transactional=True)
            for number in range(PARTITIONS)
            if leaders[number] == leaders[place.partition]
        }
        ending = asyncio.ensure_future(self._end(who, commit=self._rng.random() < 0.5))
        await asyncio.sleep(self._rng.uniform(0.0, OVERTAKEN_S))
        codes = await self._append(place, batches)
        await ending
        for code in codes:
            self._note("overtaken", code)


def _first_error(answer: Any) -> int:
    """The first error in the answer to an AddPartitionsToTxn for one topic; 0: there is none."""
    ((_, rows),) = answer.errors
    return next((code for _, code in rows if code), 0)
