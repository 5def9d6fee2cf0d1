"""A consumer of aiokafka that is assigned partitions and belongs to no group."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from workloads.client import aio_offsets, payload
from workloads.client.aio_closing import end_start, end_task, stop_client
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.common import (
    POLL_RECORDS_MAX,
    POLL_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    Records,
    split,
)


class Reader:
    """A consumer, which connects to the cluster when it is first assigned a partition."""

    def __init__(self, arguments: Mapping[str, Any], form: payload.Form = payload.PLAIN) -> None:
        self._form = form
        self._consumer = AIOKafkaConsumer(**arguments)
        self._starting: asyncio.Task[None] | None = None
        self._positions: dict[str, int] = {}
        """The offset after the last record read, by assigned partition; -1 before the first."""
        self._names: dict[tuple[str, int], str] = {}
        """The names of the assigned partitions, by topic and partition number."""

    async def assign(self, keys: list[str]) -> str | None:
        """Assign these partitions to the consumer, and return the error if that fails.

        A partition that was assigned before is read on from its position, a new one from the log
        start. The assignment fails if the consumer cannot connect to the cluster.
        """
        error = await self._start()
        if error is not None:
            return error
        self._positions = {key: self._positions.get(key, -1) for key in keys}
        self._names = {split(key): key for key in keys}
        self._consumer.assign([TopicPartition(*split(key)) for key in keys])
        # An assignment replaces the former one and its positions. Between the assignment and the
        # last of the seeks there must be no await: aiokafka would reset the positions by itself.
        unread = []
        for key, position in self._positions.items():
            if position < 0:
                unread.append(TopicPartition(*split(key)))
            else:
                self._consumer.seek(TopicPartition(*split(key)), position)
        if unread:
            with suppress(TimeoutError):  # it continues in the background
                async with asyncio.timeout(POLL_TIMEOUT_S):
                    await self._consumer.seek_to_beginning(*unread)
        return None

    async def poll(self) -> tuple[Records, str | None]:
        """Return records by partition in the order of delivery, and any error that ended the poll.

        The method asks aiokafka for fetched records twice, with a pause between, because aiokafka
        fetches in the background.
        """
        records: Records = {}
        try:
            with its_assertions():
                left = POLL_RECORDS_MAX - await self._take(records, POLL_RECORDS_MAX)
                if left:
                    await asyncio.sleep(POLL_TIMEOUT_S)
                    await self._take(records, left)
                fetcher = self._consumer._fetcher
                if fetcher is not None and fetcher.error_future.done():
                    raise KafkaError("the task that fetches has ended")
        except KafkaError as error:
            return records, name_of(error)
        return records, None

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        """Read these partitions again from these offsets; return the error if that fails."""
        try:
            with its_assertions():
                for key, offset in places.items():
                    self._consumer.seek(TopicPartition(*split(key)), offset)
                    self._positions[key] = offset
        except KafkaError as error:
            return name_of(error)
        return None

    async def progress(self, key: str) -> tuple[int, int]:
        """Return the position in a partition, and the high watermark requested from its leader."""
        partition = TopicPartition(*split(key))
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            with its_assertions():
                end = await aio_offsets.ask(self._consumer._client, partition, "high")
                return await self._consumer.position(partition), end

    async def watermarks(self, key: str) -> dict[str, int]:
        """Return log start, last stable offset and high watermark, requested in this order."""
        if (error := await self._start()) is not None:
            raise KafkaError(error)
        partition = TopicPartition(*split(key))
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            with its_assertions():
                return {
                    place: await aio_offsets.ask(self._consumer._client, partition, place)
                    for place in aio_offsets.PLACES
                }

    async def close(self) -> None:
        if self._starting is not None:
            await end_start(self._starting)
        fetcher = self._consumer._fetcher
        if fetcher is not None:
            # The fetcher would cancel its fetches one by one; the cancellation of the first fetch
            # that sleeps after an error would end the fetcher itself, and leave the other fetches
            # and all connections open.
            await end_task(fetcher.error_future)
            fetches = list(fetcher._pending_tasks)
            fetcher._pending_tasks.clear()
            await asyncio.gather(*map(end_task, fetches))
        await stop_client(self._consumer.stop, self._consumer._client.close)

    async def _start(self) -> str | None:
        """Start the consumer; return the error if it has not started within the time limit.

        If the start is still in progress then, the next assignment waits for it again.
        """
        error = None
        with suppress(TimeoutError):
            async with asyncio.timeout(QUERY_TIMEOUT_S):
                while True:
                    if self._starting is None:
                        self._starting = asyncio.ensure_future(self._consumer.start())
                    try:
                        await asyncio.shield(self._starting)
                        return None
                    except KafkaError as failed:
                        error = name_of(failed)
                        self._starting = None
                    await asyncio.sleep(POLL_TIMEOUT_S)
        return error or "TimeoutError"

    async def _take(self, records: Records, count_max: int) -> int:
        """Take records that have been fetched, and return their number."""
        count = 0
        taken = await self._consumer.getmany(timeout_ms=0, max_records=count_max)
        for partition, messages in taken.items():
            key = self._names.get(partition) or f"{partition.topic}-{partition.partition}"
            pairs = records.setdefault(key, [])
            for message in messages:
                value = self._form.decode(key, message.key, message.value, message.headers)
                pairs.append([message.offset, value])
                self._positions[key] = message.offset + 1
            count += len(messages)
        return count
