"""aiokafka, unmodified, as the client of a process: plain asyncio, on sockets and in simulation.

A process owns at most one producer, which is discarded after its first failure, and one consumer,
which is assigned partitions, belongs to no group and commits nothing.

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

**Closing.** None of aiokafka's ways to stop has a time limit, and some never end: flushing what can
never be sent, waiting for a metadata update that no task makes any more. So this module forces
tasks to end and waits for them within limits, for which it needs some private names of aiokafka.
"""

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, NoError, ProducerClosed, for_code
from aiokafka.protocol.admin import DeleteRecordsRequest

from workloads.client import aio_errors, aio_offsets, outcome, payload
from workloads.client.aio_settings import (
    DELIVERY_TIMEOUT,
    consumer_arguments,
    producer_arguments,
    refusal,
)
from workloads.client.base_client import PlainClient, Report
from workloads.client.common import (
    DELETION_TIMEOUT_S,
    POLL_RECORDS_MAX,
    POLL_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    Records,
    Settings,
    silenced,
    split,
)

__all__ = ["AioClient", "refusal"]

STOP_TIMEOUT_S = 2.0
"""How long a client of aiokafka may take to close its connections."""

silenced("aiokafka")


class AioClient(PlainClient):
    """A process that uses aiokafka."""

    FAILURES = (KafkaError, TimeoutError)

    def __init__(self, settings: Settings) -> None:
        """Raises :class:`~workloads.client.aio_settings.BadSetting`."""
        super().__init__(settings.topic)
        name = f"process-{settings.process}"
        self._common = {"bootstrap_servers": settings.bootstrap, "client_id": name}
        self._producer_arguments = producer_arguments(settings.producer)
        self._delivery_timeout_s = self._producer_arguments.pop(DELIVERY_TIMEOUT) / 1000
        self._consumer_arguments = consumer_arguments(settings.consumer)
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def close(self) -> None:
        """Discard what is queued and in flight, and close every connection, within a time limit."""
        self._alive = False
        used, self._writer, self._reader = (self._writer, self._reader), None, None
        await asyncio.gather(*(each.close() for each in used if each is not None))

    def _name_of(self, error: Exception) -> str:
        return name_of(error)

    def _writes(self) -> "Writer":
        if self._writer is None:
            arguments = {**self._common, **self._producer_arguments}
            self._writer = Writer(arguments, self._delivery_timeout_s, self._form)
        return self._writer

    def _reads(self) -> "Reader":
        if self._reader is None:
            self._reader = Reader({**self._common, **self._consumer_arguments}, self._form)
        return self._reader

    async def _assign(self, keys: list[str]) -> str | None:
        return await self._reads().assign(keys)

    async def _places(self, key: str) -> dict[str, int]:
        return await self._reads().watermarks(key)

    async def _create_topic(
        self, topic: str, partitions: int
    ) -> tuple[outcome.Outcome, str | None]:
        size: dict[str, Any] = {"num_partitions": partitions, "replication_factor": self._replicas}
        if self._placed:
            size = dict.fromkeys(size, -1)
            size["replica_assignments"] = dict.fromkeys(range(partitions), self._placed)
        new = NewTopic(topic, **size, topic_configs=self._topic_config)
        return await _create(self._common, new)

    async def _delete_records(
        self, key: str, offset: int
    ) -> tuple[outcome.Outcome, int | None, str | None]:
        return await _delete(self._common, TopicPartition(*split(key)), offset)

    async def _delete_topic(self, topic: str) -> tuple[outcome.Outcome, str | None]:
        return await _delete_topic(self._common, topic)

    async def _alter_topic(self, topic: str, settings: Mapping[str, str]) -> str | None:
        return await _alter(self._common, topic, settings)


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
                _forget(future)
        reports += [Report("fail", None, refused)] * (len(records) - len(reports))
        return _known_offsets([key for key, _ in records], reports)

    async def close(self) -> None:
        """Discard what is queued and in flight, and close the connections."""
        producer = self._producer
        await _end_start(self._starting)
        sender = producer._sender.sender_task
        if sender is not None:
            requests = _requests(sender)
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
        """Read these partitions from now on: new ones from the beginning, kept ones go on.

        Returns the error if nothing was assigned because the cluster was not found.
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
        """Return records by partition, in the order they came, and any error that ended the poll.

        It looks twice, because aiokafka fetches in the background meanwhile.
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
        """Return the position in a partition, and its high watermark as its leader has it now."""
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
            await _end_start(self._starting)
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
        """Start the consumer; return the error if it has not started in time.

        The next assignment waits again for a start that is still in progress.
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


@asynccontextmanager
async def _administering(common: Mapping[str, Any]) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a started admin client, for as long as one request may take.

    Raises ``KafkaError`` and ``TimeoutError``.
    """
    admin = AIOKafkaAdminClient(**common, request_timeout_ms=int(QUERY_TIMEOUT_S * 1000))
    starting = asyncio.ensure_future(admin.start())
    try:
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            with its_assertions():
                await asyncio.shield(starting)
                yield admin
    finally:
        await _end_start(starting)
        await stop_client(admin.close, admin._client.close)


async def _create(common: Mapping[str, Any], new: NewTopic) -> tuple[outcome.Outcome, str | None]:
    """Create a topic; return the outcome and the name of the error."""
    # Nothing is sent until the client has found the controller.
    in_doubt: Literal["fail", "info"] = "fail"
    try:
        async with _administering(common) as admin:
            if admin._client.cluster.controller is None:
                return "fail", "NoController"  # aiokafka would ignore that it is unknown
            in_doubt = "info"
            answer = await admin.create_topics([new])
    except (KafkaError, TimeoutError) as error:
        return in_doubt, name_of(error)
    ((_, code, *_),) = answer.topic_errors
    answered = for_code(code)
    return aio_errors.of_creation(answered), None if answered is NoError else answered.__name__


async def _delete(
    common: Mapping[str, Any], partition: TopicPartition, offset: int
) -> tuple[outcome.Outcome, int | None, str | None]:
    """Delete all records before an offset, with one request.

    Returns the outcome, the start of the log on all replicas after it, and the name of the error.
    """
    is_asked = False
    try:
        async with _administering(common) as admin:
            admin._client.cluster.update_metadata(await admin._get_cluster_metadata())
            leader = admin._client.cluster.leader_for_partition(partition)
            if leader is None or leader < 0:
                return "fail", None, "LeaderNotAvailableError"
            is_asked = True
            places = [(partition.topic, [(partition.partition, offset)])]
            request = DeleteRecordsRequest(places, int(DELETION_TIMEOUT_S * 1000))
            answer = await admin._client.send(leader, request)
    except (KafkaError, TimeoutError) as error:
        return "info" if is_asked else "fail", None, name_of(error)
    (((_, ((_, low, code, *_),), *_)),) = answer.topics
    refused = for_code(code)
    if refused is not NoError:
        return aio_errors.of_records_deletion(refused()), None, refused.__name__
    return "ok", int(low), None


async def _delete_topic(
    common: Mapping[str, Any], topic: str
) -> tuple[outcome.Outcome, str | None]:
    """Delete a topic; return the outcome and the name of the error."""
    in_doubt: Literal["fail", "info"] = "fail"
    try:
        async with _administering(common) as admin:
            if admin._client.cluster.controller is None:
                return "fail", "NoController"
            in_doubt = "info"
            answer = await admin.delete_topics([topic], int(DELETION_TIMEOUT_S * 1000))
    except (KafkaError, TimeoutError) as error:
        return in_doubt, name_of(error)
    ((_, code, *_),) = answer.topic_error_codes
    answered = for_code(code)
    return aio_errors.of_topic_deletion(
        answered
    ), None if answered is NoError else answered.__name__


async def _alter(common: Mapping[str, Any], topic: str, settings: Mapping[str, str]) -> str | None:
    """Change these settings of a topic; return the name of the error, if any."""
    try:
        async with _administering(common) as admin:
            asked = ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))
            [answer] = await admin.alter_configs([asked])
    except (KafkaError, TimeoutError) as error:
        return name_of(error)
    ((code, *_),) = answer.resources
    return None if code == NoError.errno else str(for_code(code).__name__)


async def end_task(task: "asyncio.Future[Any]") -> None:
    """Cancel a task until it has ended.

    At the first cancellation aiokafka's sender waits for the requests in flight, however long that
    takes.
    """
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    _forget(task)


def _requests(sender: "asyncio.Task[Any]") -> list["asyncio.Task[Any]"]:
    """Return the request tasks that a sender has in flight, or had when it failed.

    Only the sender's frame refers to them. A sender that ends leaves all but one of them running,
    and they would fail on batches that no longer exist.
    """
    coroutine: Any = sender.get_coro()
    frames = [coroutine.cr_frame]
    if sender.done() and not sender.cancelled() and (error := sender.exception()) is not None:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [task for frame in frames if frame for task in frame.f_locals.get("tasks", ())]


async def _end_start(starting: "asyncio.Task[None]") -> None:
    """Cancel a client's start, unless it is over.

    While the start requests metadata from its first broker (``client.bootstrap``), only its frame
    refers to that connection, and nothing else would close it.
    """
    connection = None
    coroutine: Any = starting.get_coro()
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        connection = frame.f_locals.get("bootstrap_conn", connection)
        coroutine = coroutine.cr_await
    await end_task(starting)
    if connection is not None:
        connection.close()


async def stop_client(
    stop: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]
) -> None:
    """Stop a client of aiokafka, and close its connections even if that fails or takes too long."""
    for ending in (stop, close):
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                (error,) = await asyncio.gather(ending(), return_exceptions=True)
                if error is None:
                    return


def _forget(future: "asyncio.Future[Any]") -> None:
    """Discard a future that has no reader any more, so that asyncio does not log its error."""
    if not future.done():
        future.cancel()
    elif not future.cancelled():
        future.exception()


@contextmanager
def its_assertions() -> Iterator[None]:
    """Turn an assertion that fails inside aiokafka into an error of the client like any other."""
    try:
        yield
    except AssertionError as error:
        raise KafkaError(f"AssertionError: {error}") from error


def name_of(error: BaseException) -> str:
    return type(error).__name__
