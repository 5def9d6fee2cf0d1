"""Transactions by librdkafka: a client whose producer has a transactional id for life.

librdkafka says of an error what is left to do: it is fatal, or the transaction must be aborted, or
the same call may be repeated. It is never repeated here: ``workloads.client.transaction`` says why.
After an abort its producer goes on, with another epoch where sequence numbers were lost (KIP-360).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from model.op import Op
from workloads.client import payload, transaction
from workloads.client.common import Place, completed, split, to_commit
from workloads.client.confluent import ConfluentClient, Worker, Writer
from workloads.client.transaction import INIT_TIMEOUT_S, Failure


class TransactionalConfluentClient(ConfluentClient):
    """A process by librdkafka that understands ``init`` and ``txn``, too."""

    _transactor: "TransactionalWriter | None" = None

    def __init__(
        self,
        bootstrap: str,
        process: int,
        producer: Mapping[str, str],
        consumer: Mapping[str, str],
        topic: Mapping[str, str],
        *,
        asks_again: bool = False,
    ) -> None:
        """``asks_again``: for the end of a transaction that it got no answer to."""
        super().__init__(bootstrap, process, producer, consumer, topic)
        self._end_s = transaction.end_timeout_s(producer, asks_again=asks_again)

    async def invoke(self, op: Op) -> Op:
        match op.f:
            case "init":
                return await self._init(op)
            case "txn":
                assert self._transactor is not None, "init comes first"
                answer, goes_on = await transaction.carry_out(op, self._transactor, self._reader)
                self._alive = self._alive and goes_on
                return answer
            case _:
                return await super().invoke(op)

    async def close(self) -> None:
        transactor, self._transactor = self._transactor, None
        await asyncio.gather(super().close(), *([transactor.close()] if transactor else []))

    async def _init(self, op: Op) -> Op:
        ((_, transactional_id, *_),) = op.value
        assert self._transactor is None, "a process has one transactional id for life"
        config = {**self._producer_config, "transactional.id": transactional_id}
        self._transactor = TransactionalWriter(config, self._end_s, self._form)
        value = [["init", transactional_id, None]]
        try:
            await self._transactor.init()
        except Failure as failure:
            return completed(op, "info", value, failure.name)
        return completed(op, "ok", value)


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
        """Get an id and an epoch. Raises :class:`Failure`."""
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
        await self._worker.call(lambda: None)  # what is under way is bounded
        self._worker.stop()
        await super().close()

    async def _step(self, call: Callable[[], None]) -> None:
        try:
            await self._worker.call(call)
        except KafkaException as raised:
            error = raised.args[0]
            raise Failure(error.name(), can_abort=error.txn_requires_abort()) from None
