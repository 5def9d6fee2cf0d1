"""A producer of aiokafka with a time limit for each record.

**The time limit of a send.** aiokafka has no ``delivery.timeout.ms``. Its batches expire after
``request_timeout_ms``; those of an idempotent producer only while the partition has no leader
(``message_accumulator.drain_by_nodes``), otherwise they are retried for ever
(``sender._can_retry``). This module adds the limit: the outcome of a record without a result by
then is unknown, and the producer is discarded.

**Order.** One batch per partition is in flight at a time, one request per broker, and a batch that
is retried goes to the head of its queue (``sender._muted_partitions``,
``message_accumulator.reenqueue``). The sequence numbers of a failed batch are used up, and brokers
reject everything that an idempotent producer sends after it: the producer is discarded, like every
producer that has failed.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed

from workloads.client import aio_errors, payload
from workloads.client.aio_closing import end_start, end_task, forget, requests_of, stop_client
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.base_client import Report
from workloads.client.common import split


class Writer:
    """A producer, which starts in the background when it is created."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        delivery_timeout_s: float,
        form: payload.Form = payload.PLAIN,
    ) -> None:
        self._delivery_timeout_s = delivery_timeout_s
        self._form = form
        self._producer = AIOKafkaProducer(**arguments)
        self._starting = asyncio.ensure_future(self._producer.start())
        self._queued: list[asyncio.Future[Any]] = []
        """The futures of the records that the current operation has queued."""

    async def send(self, records: list[tuple[str, int]]) -> list[Report]:
        """Send all records at once, and return a report for each of them.

        The records of a partition are one batch if they fit. The method returns when every record
        has a result, or when the delivery timeout has expired.
        """
        until = asyncio.get_running_loop().time() + self._delivery_timeout_s
        self._queued = []
        try:
            refused = await self._queue(records, until)
            reports = [await _report(future, until) for future in self._queued]
        finally:
            for future in self._queued:
                forget(future)
        reports += [Report("fail", None, refused)] * (len(records) - len(reports))
        return _known_offsets([key for key, _ in records], reports)

    async def close(self) -> None:
        """Discard queued and unacknowledged records, and close the connections."""
        producer = self._producer
        await end_start(self._starting)
        sender = producer._sender.sender_task
        if sender is not None:
            requests = requests_of(sender)
            await end_task(sender)
            await asyncio.gather(*map(end_task, requests))
            # The sender has ended, so flushing would wait for ever. aiokafka's own way to fail
            # queued batches raises an error for batches that wait for another attempt
            # (``_pop_batch``'s callback).
            accumulator = producer._message_accumulator
            accumulator._batches.clear()
            accumulator._pending_batches.clear()
        for future in self._queued:
            if not future.done():
                future.set_exception(ProducerClosed())
        await stop_client(producer.stop, producer.client.close)

    async def _queue(self, records: list[tuple[str, int]], until: float) -> str | None:
        """Queue records, up to the first that aiokafka rejects; return the error of that record."""
        try:
            async with asyncio.timeout_at(until):
                with its_assertions():
                    await asyncio.shield(self._starting)
                    for key, value in records:
                        topic, partition = split(key)
                        record_key, record_value, headers = self._form.encode(key, value)
                        future = await self._producer.send(
                            topic,
                            value=record_value,
                            key=record_key,
                            partition=partition,
                            headers=headers,
                        )
                        self._queued.append(future)
        except (KafkaError, TimeoutError) as error:
            return name_of(error)
        return None


async def _report(future: "asyncio.Future[Any]", until: float) -> Report:
    """Wait for the result of a queued record until the time ``until``, and return a report on it.

    A record without a result by then is reported with the error ``TimeoutError``.
    """
    try:
        async with asyncio.timeout_at(until):
            metadata = await future
    except (KafkaError, TimeoutError) as error:
        return Report(aio_errors.of_send(error), None, name_of(error))
    return Report("ok", None if metadata is None else metadata.offset)


def _known_offsets(keys: list[str], reports: list[Report]) -> list[Report]:
    """Return the reports without offsets that aiokafka has computed from the base offset -1.

    A broker responds with the base offset -1 if a batch is a duplicate and its producer state no
    longer contains the original batch. aiokafka uses -1 as a real offset, and reports the batch's
    records at the offsets -1, 0, 1, … (``sender.handle_response``, ``message_accumulator.done``).
    The offset of such a record is replaced by ``None``.

    The series cannot be continued by the real offset of a later record. After ``n`` such records
    the series would continue with ``n - 1``, but a record after ``n`` others in the log has at
    least the offset ``n``.
    """
    known = []
    made_up: dict[str, int] = {}  # by partition: the next offset of the series, if it continues
    for key, report in zip(keys, reports, strict=True):
        if report.offset is not None and report.offset in (-1, made_up.get(key)):
            made_up[key] = report.offset + 1
            known.append(Report(report.outcome, None, report.error))
        else:
            made_up.pop(key, None)
            known.append(report)
    return known
