"""A producer that has a transaction open in a topic when the topic is deleted.

The transaction ends before, after or during the deletion. Its coordinator then needs no marker of
the deleted partition, and the transactional id can be used for the next transaction.
"""

import asyncio
import random
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest

from workloads.client.asking.own_topics import Administrator, append
from workloads.client.asking.producer import TIMEOUT_MS, Producer
from workloads.client.asking.requests import Place
from workloads.client.asking.txn_requests import batch

MEANWHILE_S: Final = 0.05
"""How much later than the deletion is requested the transaction ends, at most."""


class DeletedTopics(Producer):
    """The producer of one process; ``ask`` runs one story, and returns it as text."""

    def __init__(
        self, client: AIOKafkaClient, rng: random.Random, name: str, admin: Administrator
    ) -> None:
        super().__init__(client, rng, name)
        self._admin = admin
        self._topics = 0
        self._exists = False
        """Whether the last topic exists, as far as is known."""

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Begin a transaction in a topic, delete the topic, and end the transaction."""
        self._said = []
        topic = await self._topic()
        who = None if topic is None else await self._init()
        if topic is None or who is None:
            return ", ".join(self._said)
        if not await self._add(who, topic):
            await self._produce(who, Place(topic, 0))
            commit = self._rng.random() < 0.5
            if self._rng.random() < 0.5:
                await self._delete(topic)
                await self._end(who, commit=commit)
            else:
                deleting = asyncio.ensure_future(self._delete(topic))
                await asyncio.sleep(self._rng.uniform(0.0, MEANWHILE_S))
                await self._end(who, commit=commit)
                await deleting
        return ", ".join(self._said)

    async def _topic(self) -> str | None:
        """Return the topic of this story; create it, unless an earlier story has left one."""
        name = f"{self._base}-{self._topics}"
        if not self._exists:
            kind, error = await self._admin.create(name)
            self._said.append(f"create {name}: {error or 'NoError'}")
            self._exists = kind == "ok"
            self._topics += kind == "info"
        return name if self._exists else None

    async def _add(self, who: tuple[int, int], topic: str) -> int:
        request = AddPartitionsToTxnRequest(self._name, *who, [(topic, [0])])

        def code_of(answer: Any) -> int:
            ((_, ((_, code),)),) = answer.errors
            return int(code)

        return self._note("add", code_of(await self._when_free(request, code_of)))

    async def _produce(self, who: tuple[int, int], place: Place) -> int:
        [code] = await append(
            self._client,
            place,
            {place.partition: batch(*who, 0, 2, transactional=True)},
            transactional_id=self._name,
            timeout_ms=TIMEOUT_MS,
        )
        return self._note("batch", code)

    async def _delete(self, topic: str) -> None:
        self._exists, self._topics = False, self._topics + 1
        _, error = await self._admin.delete(topic)
        self._said.append(f"delete {topic}: {error or 'NoError'}")
