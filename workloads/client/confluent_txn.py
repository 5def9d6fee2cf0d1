"""Transactions by librdkafka: a client whose producer has one transactional id for its whole life.

librdkafka classifies an error: it is fatal, or the transaction must be aborted, or the same call
may be repeated. This client never repeats a call; ``workloads.client.transaction`` explains why.
After an abort the producer continues, with a new epoch if sequence numbers were lost (KIP-360).
"""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from workloads.client import payload, transaction
from workloads.client.common import Place, Settings, split, to_commit
from workloads.client.confluent import ConfluentClient
from workloads.client.confluent_threads import Worker
from workloads.client.confluent_writer import Writer
from workloads.client.transaction import INIT_TIMEOUT_S, Failure


class TransactionalConfluentClient(transaction.TransactionalClient, ConfluentClient):
    """A process that uses librdkafka with transactions."""

    _transactor: "TransactionalWriter | None" = None

    def __init__(self, settings: Settings, *, asks_again: bool = False) -> None:
        """``asks_again``: repeat the request to end a transaction if there was no response."""
        super().__init__(settings)
        self._end_s = transaction.end_timeout_s(settings.producer, asks_again=asks_again)

    async def _take(self, transactional_id: str) -> transaction.Taken:
        config = {**self._producer_config, "transactional.id": transactional_id}
        self._transactor = TransactionalWriter(config, self._end_s, self._form)
        try:
            await self._transactor.init()
        except Failure as failure:
            return transaction.Taken("info", failure.name)
        return transaction.Taken("ok")

    def _read_by(self) -> transaction.Reader | None:
        return self._reader


class TransactionalWriter(Writer):
    """A producer with a transactional id; see :class:`~workloads.client.transaction.Producer`."""

    reusable = True

    def __init__(
        self,
        config: Mapping[str, Any],
        end_timeout_s: float,
        form: payload.Form = payload.PLAIN,
    ) -> None:
        super().__init__(config, form)
        self._end_timeout_s = end_timeout_s
        self._worker = Worker("transactions")

    async def init(self) -> None:
        """Get a producer id and an epoch. Raises :class:`Failure`."""
        await self._step(lambda: self._producer.init_transactions(INIT_TIMEOUT_S))

    async def begin(self) -> None:
        await self._step(self._producer.begin_transaction)

    async def send_offsets(self, offsets: Mapping[str, Place], group: Any) -> None:
        places = [TopicPartition(*split(key), *to_commit(place)) for key, place in offsets.items()]
        bound = self._end_timeout_s
        await self._step(lambda: self._producer.send_offsets_to_transaction(places, group, bound))

    async def commit(self) -> None:
        await self._step(lambda: self._producer.commit_transaction(self._end_timeout_s))

    async def abort(self) -> None:
        await self._step(lambda: self._producer.abort_transaction(self._end_timeout_s))

    async def close(self) -> None:
        await self._worker.call(lambda: None)  # the calls in progress have time limits
        self._worker.stop()
        await super().close()

    async def _step(self, call: Callable[[], None]) -> None:
        try:
            await self._worker.call(call)
        except KafkaException as raised:
            error = raised.args[0]
            raise Failure(error.name(), can_abort=error.txn_requires_abort()) from None
