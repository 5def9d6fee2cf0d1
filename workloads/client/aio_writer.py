"""A producer of aiokafka with a time limit for each record.

**The time limit of a send.** aiokafka has no ``delivery.timeout.ms``. Its batches expire after
``request_timeout_ms``; those of an idempotent producer only while the partition has no leader
(``message_accumulator.drain_by_nodes``), otherwise they are retried for ever
(``sender._can_retry``). This module adds the limit: a record without a result by then is in doubt,
and so is everything that the producer would do later.

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
    """A producer, which starts when it first sends."""

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
        """Send all records at once, those of a partition as one batch if they fit; report on each.

        Returns when every record has a result, or when the delivery timeout has expired.
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
        """Discard what is queued and in flight, and close the connections."""
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
        """Queue records up to the first that is refused; return the error of that one, if any."""
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
    """Return the result of a queued record."""
    try:
        async with asyncio.timeout_at(until):
            metadata = await future
    except (KafkaError, TimeoutError) as error:
        return Report(aio_errors.of_send(error), None, name_of(error))
    return Report("ok", None if metadata is None else metadata.offset)


def _known_offsets(keys: list[str], reports: list[Report]) -> list[Report]:
    """Remove the offsets that aiokafka has made up.

    If a broker reports a batch as the duplicate of one that it no longer remembers, its response
    has the base offset -1, which aiokafka takes for a real offset: it reports the batch's records
    at -1, 0, 1, … (``sender.handle_response``, ``message_accumulator.done``). No real offset can
    continue such a series: a record that follows these records in the log has at least their number
    as its offset.
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
