"""A producer of librdkafka and the thread that serves its delivery reports."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from workloads.client import outcome, payload
from workloads.client.base_client import Report
from workloads.client.common import split
from workloads.client.confluent_threads import call_in_loop, resolve

_SERVE_S = 0.2
"""How long a producer's thread waits for reports before it checks whether to stop."""


class Writer:
    """A producer and the thread that serves its delivery reports."""

    def __init__(self, config: Mapping[str, Any], form: payload.Form = payload.PLAIN) -> None:
        self._form = form
        self._loop = asyncio.get_running_loop()
        self._producer = Producer(dict(config))
        self._stop = threading.Event()
        self._closed = self._loop.create_future()
        threading.Thread(target=self._serve, name="writer", daemon=True).start()

    async def send(self, records: list[tuple[str, int]]) -> list[Report]:
        """Send all records at once, pipelined; returns when each of them has a delivery report."""
        reports = [self._produce(key, value) for key, value in records]
        return [await report for report in reports]

    async def close(self) -> None:
        self._stop.set()
        await self._closed

    def _produce(self, key: str, value: int) -> "asyncio.Future[Report]":
        report: asyncio.Future[Report] = self._loop.create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            name = error.name() if error is not None else None
            offset = message.offset() if error is None else None
            answer = Report(outcome.of_send(name), offset, name)
            call_in_loop(self._loop, resolve, report, answer)

        topic, partition = split(key)
        record_key, record_value, headers = self._form.encode(key, value)
        try:
            self._producer.produce(
                topic,
                value=record_value,
                key=record_key,
                partition=partition,
                headers=headers,
                on_delivery=delivered,
            )
        except (BufferError, KafkaException) as error:
            # Refused before it was queued: no attempt was made.
            name = "_QUEUE_FULL" if isinstance(error, BufferError) else error.args[0].name()
            report.set_result(Report("fail", None, name))
        return report

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._report(_SERVE_S)
        self._producer.purge()
        self._report(0)
        del self._producer  # destroyed in this thread, however long that takes
        call_in_loop(self._loop, resolve, self._closed, None)

    def _report(self, timeout_s: float) -> None:
        """Serve delivery reports.

        A fatal error (OUT_OF_ORDER_SEQUENCE_NUMBER, for example) is raised here once; the results
        of the records are reported by later calls.
        """
        with suppress(KafkaException):
            self._producer.poll(timeout_s)
