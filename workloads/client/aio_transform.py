"""Consume-transform-produce transactions with aiokafka, and one producer per owned partition.

When aiokafka commits offsets in a transaction, it does not send the member's id and generation
(KIP-447), so the coordinator cannot reject a member that no longer owns the partition. Fencing by
the transactional id replaces this: each partition has its own transactional id. A member that is
assigned the partition first calls ``init_transactions``, which aborts the open transaction of the
previous owner and fences it. Only then does the member fetch the committed offset. (Kafka Streams'
``exactly_once`` worked in this way, before ``exactly_once_v2``.)

A transaction has the records of one partition. A rebalance waits for the transaction in progress to
end, as it does in a client with a single thread.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from model.op import Op
from workloads.client import payload, transaction, transform
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.aio_group import GroupAioClient, Member
from workloads.client.aio_settings import DELIVERY_TIMEOUT, producer_arguments
from workloads.client.aio_txn import TransactionalWriter
from workloads.client.common import Settings, completed, split, to_commit


class TransformingAioClient(GroupAioClient):
    """A process with an aiokafka consumer in a group, for consume-transform-produce transactions.

    The operation ``txn`` polls records, sends their transformed values and commits the offsets.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._arguments = {**self._common, **producer_arguments(settings.producer)}
        self._delivery_s = self._arguments.pop(DELIVERY_TIMEOUT) / 1000
        self._end_s = transaction.end_timeout_s(settings.producer)
        self._prefix = settings.prefix
        self._transformer: TransformingMember | None = None

    async def invoke(self, op: Op) -> Op:
        if op.f != "txn":
            return await super().invoke(op)
        assert self._transformer is not None, "a process subscribes before its first transaction"
        async with self._transformer.busy:
            answer, goes_on = await transform.carry_out(op, self._transformer)
        self._alive = self._alive and goes_on
        return answer

    async def _subscribe(self, op: Op) -> Op:
        ((_, group, topics, how),) = op.value
        if self._transformer is None:
            self._transformer = TransformingMember(
                self._member_arguments, group, how, self._make_producer
            )
            self._member = self._transformer
        error = await self._transformer.subscribe(topics)
        return completed(op, "ok" if error is None else "fail", op.value, error)

    def _make_producer(self, transactional_id: str) -> TransactionalWriter:
        name = prefixed_once(self._prefix, transactional_id)
        arguments = {**self._arguments, "transactional_id": name}
        return TransactionalWriter(arguments, self._delivery_s, self._end_s)


def prefixed_once(prefix: str, transactional_id: str) -> str:
    """Return an id that consists of a group and a partition with the prefix at its beginning only.

    Both names have the prefix on the brokers, while plans name the coordinator of the id as a
    whole.
    """
    return prefix + transactional_id.replace(prefix, "")


class TransformingMember(Member):
    """A group member that takes over the transactional id of every partition assigned to it.

    See :class:`~workloads.client.transform.Member`.
    """

    def __init__(
        self, arguments: Mapping[str, Any], group: str, how: Mapping[str, Any], make_producer: Any
    ) -> None:
        super().__init__(arguments, group, how)
        self._make_producer = make_producer
        self._producers: dict[str, TransactionalWriter] = {}
        """The producer of each owned partition whose transactional id was taken over."""
        self._ending: list[asyncio.Task[None]] = []
        self._turn = 0
        self.busy = asyncio.Lock()
        """Held while a transaction is in progress."""

    async def producer_of(self, keys: list[str]) -> TransactionalWriter:
        (key,) = keys
        return self._producers[key]

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        owned = {
            key: offset
            for key, offset in places.items()
            if self._consumer._subscription.is_assigned(TopicPartition(*split(key)))
        }
        self._feed.forget(places)
        return await super().rewind(owned)

    async def revoked(self, keys: set[str]) -> None:
        async with self.busy:
            await super().revoked(keys)
            for key in sorted(keys & self._producers.keys()):
                ending = self._producers.pop(key).close()
                self._ending.append(asyncio.ensure_future(ending))

    async def close(self) -> None:
        ending = [producer.close() for producer in self._producers.values()]
        self._producers = {}
        await asyncio.gather(super().close(), *ending, *self._ending)

    async def _take_owned(self) -> bool:
        """Take fetched records of one owned partition; return whether there were any."""
        coordinator = self._coordinator
        if coordinator._coordination_task.cancelled():  # it has missed a heartbeat of its own
            raise KafkaError("the task that coordinates has ended")
        coordinator.check_errors()
        subscription = self._consumer._subscription
        if subscription.reassignment_in_progress:
            return False
        assignment = subscription.subscription.assignment
        owned = sorted(f"{place.topic}-{place.partition}" for place in assignment.tps)
        for key in owned:
            if key not in self._producers:
                await self._take_over(key)
            if not assignment.active or subscription.reassignment_in_progress:
                return False
        self._turn += 1
        for number in range(len(owned)):
            key = owned[(self._turn + number) % len(owned)]
            place = TopicPartition(*split(key))
            taken = await self._consumer.getmany(
                place, timeout_ms=0, max_records=transform.RECORDS_MAX
            )
            messages = taken.get(place, [])
            self._feed.read(
                key, [[m.offset, payload.decode(key, m.key, m.value)] for m in messages]
            )
            if messages:
                return True
        return self._feed.has_records

    async def _take_over(self, key: str) -> None:
        """Fence the previous owner of the partition, and continue at the group's committed offset.

        Raises ``KafkaError`` if that fails; the process then ends.
        """
        producer = self._make_producer(f"{self.group}-{key}")
        kind, error = await producer.init()
        if kind != "ok":
            await producer.close()
            raise KafkaError(error)
        try:
            with its_assertions():
                place, _ = to_commit((await self.committed([key]))[key] or 0)
                self._consumer.seek(TopicPartition(*split(key)), place)
        except (KafkaError, TimeoutError) as failed:
            await producer.close()
            raise KafkaError(name_of(failed)) from None
        self._producers[key] = producer
        self._positions[key] = place
        for begins in self._feed.unplaced():
            if key in begins:
                begins[key] = place
