"""Transactions by aiokafka: a client whose producer has one transactional id for its whole life.

aiokafka gives a batch up when a broker rejects it, and continues with the next sequence number,
which no broker accepts any more; the transaction can still be aborted, but the producer begins no
other. An error that its sender cannot handle (mostly: it was fenced) ends the sender, and every
call from then on fails one of aiokafka's assertions.

aiokafka can commit offsets within a transaction, but does not name the member of the group (it
knows TxnOffsetCommit up to version 2, before KIP-447).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.structs import OffsetAndMetadata

from workloads.client import outcome, payload, transaction
from workloads.client.aio import AioClient
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.aio_settings import DELIVERY_TIMEOUT, producer_arguments
from workloads.client.aio_writer import Writer
from workloads.client.base_client import Report
from workloads.client.common import Place, Settings, split, to_commit
from workloads.client.transaction import INIT_TIMEOUT_S, Failure


class Beginner(transaction.Owned, Protocol):
    """A producer that gets its id and epoch by ``init``."""

    @property
    def identity(self) -> list[int] | None: ...
    async def init(self) -> tuple[outcome.Outcome, str | None]: ...


class TransactionalAioClient(transaction.TransactionalClient, AioClient):
    """A process that uses aiokafka with transactions."""

    def __init__(self, settings: Settings, *, asks_again: bool = False) -> None:
        """``asks_again``: repeat the request to end a transaction if there was no response."""
        super().__init__(settings)
        self._arguments = {**self._common, **producer_arguments(settings.producer)}
        self._delivery_s = self._arguments.pop(DELIVERY_TIMEOUT) / 1000
        self._end_s = transaction.end_timeout_s(settings.producer, asks_again=asks_again)

    async def _take(self, transactional_id: str) -> transaction.Taken:
        producer = self._make_producer(transactional_id)
        kind, error = await producer.init()
        if kind == "ok":
            self._transactor = producer
        else:
            await producer.close()
        return transaction.Taken(kind, error, producer.identity)

    def _read_by(self) -> transaction.Reader | None:
        return self._reader

    def _make_producer(self, transactional_id: str) -> Beginner:
        arguments = {**self._arguments, "transactional_id": transactional_id}
        return TransactionalWriter(arguments, self._delivery_s, self._end_s, self._form)


class TransactionalWriter(Writer):
    """A producer with a transactional id; see :class:`~workloads.client.transaction.Producer`."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        delivery_timeout_s: float,
        end_timeout_s: float,
        form: payload.Form = payload.PLAIN,
    ) -> None:
        super().__init__(arguments, delivery_timeout_s, form)
        self._end_timeout_s = end_timeout_s
        self._manager = self._producer._txn_manager
        self.reusable = True

    @property
    def identity(self) -> list[int] | None:
        """The producer id and epoch, once it has them."""
        known = self._manager.has_pid()
        return [self._manager.producer_id, self._manager.producer_epoch] if known else None

    async def init(self) -> tuple[outcome.Outcome, str | None]:
        """Get a producer id and an epoch; return the outcome and the name of the error."""
        try:
            async with asyncio.timeout(INIT_TIMEOUT_S):
                with its_assertions():
                    await asyncio.shield(self._starting)
        except KafkaConnectionError as error:
            return "fail", name_of(error)  # it has found no broker
        except (KafkaError, TimeoutError) as error:
            return "info", name_of(error)
        return "ok", None

    async def begin(self) -> None:
        await self._step(self._producer.begin_transaction)
        self._heed()

    async def send(self, records: list[tuple[str, int]]) -> list[Report]:
        reports = await super().send(records)
        self.reusable = self.reusable and all(report.outcome == "ok" for report in reports)
        return reports

    async def send_offsets(self, offsets: Mapping[str, Place], group: str) -> None:
        places = {
            TopicPartition(*split(key)): OffsetAndMetadata(*to_commit(place))
            for key, place in offsets.items()
        }
        await self._step(lambda: self._producer.send_offsets_to_transaction(places, group))

    async def commit(self) -> None:
        await self._step(self._producer.commit_transaction)

    async def abort(self) -> None:
        await self._step(self._producer.abort_transaction)

    async def close(self) -> None:
        for batches in self._producer._message_accumulator._batches.values():
            for batch in batches:  # a sender that ends also fails batches that wait to be drained
                batch._drain_waiter.add_done_callback(_hear)
        await super().close()
        self._heed()

    async def _step(self, call: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(self._end_timeout_s):
                with its_assertions():
                    await call()
        except (KafkaError, TimeoutError) as error:
            self._heed()
            raise Failure(name_of(error), can_abort=False) from None

    def _heed(self) -> None:
        """Silence the errors of aiokafka's transaction futures, which are reported elsewhere."""
        waiters = [self._manager._transaction_waiter]
        waiters += [waiter for _, _, waiter in self._manager._pending_txn_offsets]
        for waiter in waiters:
            if waiter is not None:
                waiter.add_done_callback(_hear)


def _hear(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()
