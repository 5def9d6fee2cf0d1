"""librdkafka (confluent-kafka) as the client of a process: threads inside, asyncio outside.

A process owns at most one producer, which is discarded after its first failure, and one consumer.
librdkafka reports through callbacks and blocks in its calls, so each of them is driven by a thread
of its own, from its creation to its destruction. The threads are daemons, because librdkafka may
block while it closes, and the run must not wait for that. This is the only module of the workloads
that may start threads: librdkafka can never run in simulation.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from workloads.client import outcome, payload
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

T = TypeVar("T")

_SERVE_S = 0.2
"""How long a producer's thread waits for reports before it checks whether to stop."""

_QUIET: Mapping[str, Any] = {
    "log_level": 0,
    "logger": silenced("librdkafka"),  # otherwise level 0, fatal errors, would go to stderr
    "broker.address.family": "v4",
}


ALIASES = {
    "delivery.timeout.ms": "message.timeout.ms",
    "acks": "request.required.acks",
    "linger.ms": "queue.buffering.max.ms",
    "max.in.flight.requests.per.connection": "max.in.flight",
}
"""The names that plans and contracts use, and librdkafka's aliases.

If a plan used both names of a setting, librdkafka would obey the later one, and the run would be
judged by the other.
"""


def _misleading(settings: Mapping[str, str]) -> str | None:
    for name in settings:
        for right, alias in ALIASES.items():
            if name == alias:
                return f"{name}: write {right} instead"
    return None


def refusal(producer: Mapping[str, str], consumer: Mapping[str, str]) -> str | None:
    """Return why librdkafka rejects these settings; ``None`` if it accepts them."""
    for kind, make, settings in (
        ("producer", Producer, dict(producer)),
        ("consumer", Consumer, dict(consumer) | {"group.id": "none"}),
    ):
        if (why := _misleading(settings)) is not None:
            return f"--set {kind}.{why}"
        try:
            make({**_QUIET, **settings})
        except KafkaException as error:
            return f"--set {kind}.…: {error.args[0].str()}"
        except (TypeError, ValueError) as error:
            return f"--set {kind}.…: {error}"
    return None


class ConfluentClient(PlainClient):
    """A process that uses librdkafka."""

    FAILURES = (KafkaException,)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.topic)
        name = f"process-{settings.process}"
        common = {**_QUIET, "bootstrap.servers": settings.bootstrap, "client.id": name}
        self._producer_config = {**common, **settings.producer}
        self._consumer_config = {**common, "group.id": name, **settings.consumer}
        self._admin_config = common
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def close(self) -> None:
        """Discard what is queued and in flight; returns when librdkafka has released it."""
        self._alive = False
        writer, self._writer = self._writer, None
        reader, self._reader = self._reader, None
        if writer is not None:
            await writer.close()
        if reader is not None:
            await reader.close()

    def _name_of(self, error: Exception) -> str:
        name: str = error.args[0].name()
        return name

    def _writes(self) -> "Writer":
        if self._writer is None:
            self._writer = Writer(self._producer_config, self._form)
        return self._writer

    def _reads(self) -> "Reader":
        assert self._reader is not None, "partitions are assigned to a process before it reads"
        return self._reader

    async def _assign(self, keys: list[str]) -> str | None:
        """Assign with a new consumer, which continues from the positions of the one before it."""
        old, places = self._reader, {} if self._reader is None else self._reader.positions
        if old is not None:
            old.leave()
        places = {key: places.get(key, -1) for key in keys}
        self._reader = Reader(self._consumer_config, places, self._form)
        await self._reader.open()
        return None

    async def _places(self, key: str) -> dict[str, int]:
        return await _in_thread(lambda: watermarks(self._consumer_config, key))

    async def _create_topic(
        self, topic: str, partitions: int
    ) -> tuple[outcome.Outcome, str | None]:
        size: dict[str, Any] = {"replication_factor": self._replicas}
        if self._placed:
            size = {"replica_assignment": [self._placed] * partitions}
        new = NewTopic(topic, num_partitions=partitions, **size, config=self._topic_config)
        error = await _in_thread(lambda: _create(self._admin_config, new))
        return outcome.of_creation(error), error

    async def _delete_records(
        self, key: str, offset: int
    ) -> tuple[outcome.Outcome, int | None, str | None]:
        place = TopicPartition(*split(key), offset)
        low, error = await _in_thread(lambda: _delete(self._admin_config, place))
        return outcome.of_records_deletion(error), low, error

    async def _delete_topic(self, topic: str) -> tuple[outcome.Outcome, str | None]:
        error = await _in_thread(lambda: _delete_topic(self._admin_config, topic))
        return outcome.of_topic_deletion(error), error

    async def _alter_topic(self, topic: str, settings: Mapping[str, str]) -> str | None:
        return await _in_thread(lambda: _alter(self._admin_config, topic, settings))


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
            _tell(self._loop, _resolve, report, answer)

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
        _tell(self._loop, _resolve, self._closed, None)

    def _report(self, timeout_s: float) -> None:
        """Serve delivery reports.

        A fatal error (OUT_OF_ORDER_SEQUENCE_NUMBER, for example) is raised here once; the results
        of the records are reported by later calls.
        """
        with suppress(KafkaException):
            self._producer.poll(timeout_s)


class Reader:
    """A consumer that is assigned once, and the thread that makes its blocking calls.

    It is assigned only once because a consumer whose leaders have changed may deadlock internally
    (librdkafka #5476: a lookup of a leader epoch at a broker that is being removed). A second
    assignment would then hold Python's global lock for ever, and block every other client and the
    test.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        places: Mapping[str, int],
        form: payload.Form = payload.PLAIN,
    ) -> None:
        """``places``: by partition, the offset to start at; -1 for the beginning of the log."""
        self._form = form
        self._config = config
        # The last record may be followed by control records, which the application does not
        # receive. The end that the consumer reports comes after them.
        self._consumer = Consumer({**config, "enable.partition.eof": True})
        self._asker: Consumer | None = None
        """The consumer for high watermarks; the other may see only the last stable offset."""
        if config.get("isolation.level") == "read_uncommitted":
            self._asker = self._consumer
        self._worker = Worker("reader")
        self.positions = dict(places)
        """The offset after the last record read, by assigned partition; -1 before the first."""
        self._names = {split(key): key for key in places}

    async def open(self) -> None:
        await self._worker.call(
            lambda: self._consumer.assign([_place(*entry) for entry in self.positions.items()])
        )

    async def poll(self) -> tuple[Records, str | None]:
        """Return records by partition, in the order they came, and the poll's error, if any."""
        return await self._worker.call(self._consume)

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        """Read these partitions again from these offsets; return the error if that fails."""
        return await self._worker.call(lambda: self._rewind(places))

    async def progress(self, key: str) -> tuple[int, int]:
        """Return the position in a partition, and its high watermark as its leader has it now."""
        return await self._worker.call(lambda: self._progress(key))

    async def close(self) -> None:
        await self._worker.call(self._close)
        self._worker.stop()

    def leave(self) -> None:
        """Close the consumer later, without waiting: closing it may take for ever."""
        self._worker.last(self._close)

    def _consume(self) -> tuple[Records, str | None]:
        records: Records = {}
        first_error: str | None = None
        for message in self._consumer.consume(POLL_RECORDS_MAX, POLL_TIMEOUT_S):
            error = message.error()
            topic, partition = str(message.topic()), int(message.partition() or 0)
            key = self._names[topic, partition]
            offset = message.offset()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                assert offset is not None, "the end of a partition has an offset"
                self.positions[key] = max(self.positions[key], offset)
                continue
            if error is not None:
                first_error = first_error or error.name()
                continue
            assert offset is not None, "a record that was read has an offset"
            headers: Any = message.headers() or ()
            value = self._form.decode(key, message.key(), message.value(), headers)
            records.setdefault(key, []).append([offset, value])
            self.positions[key] = offset + 1
        return records, first_error

    def _rewind(self, places: Mapping[str, int]) -> str | None:
        try:
            for key, offset in places.items():
                self._consumer.seek(_place(key, offset))
                self.positions[key] = offset
        except KafkaException as error:
            return str(error.args[0].name())
        return None

    def _progress(self, key: str) -> tuple[int, int]:
        if self._asker is None:
            self._asker = Consumer({**self._config, "isolation.level": "read_uncommitted"})
        low, high = self._asker.get_watermark_offsets(
            TopicPartition(*split(key)), timeout=QUERY_TIMEOUT_S, cached=False
        )
        position = self.positions[key]
        return (low if position < 0 else position), high

    def _close(self) -> None:
        if self._asker not in (None, self._consumer):
            self._asker.close()
        self._consumer.close()


def watermarks(config: Mapping[str, Any], key: str) -> dict[str, int]:
    """Return log start, last stable offset and high watermark, as the leader has them.

    They are requested in an order in which each is at least the one before it. ``config`` is a
    consumer's. Raises ``KafkaException``.
    """
    partition = TopicPartition(*split(key))

    def ask(isolation: str) -> tuple[int, int]:
        asker = Consumer({**config, "isolation.level": isolation})
        try:
            return asker.get_watermark_offsets(partition, timeout=QUERY_TIMEOUT_S, cached=False)
        finally:
            asker.close()

    start, stable = ask("read_committed")
    _, high = ask("read_uncommitted")
    return {"start": start, "stable": stable, "high": high}


class Worker:
    """A thread that makes one call after another."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def call(self, function: Callable[[], T]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                _tell(self._loop, _fail, answer, error)
            else:
                _tell(self._loop, _resolve, answer, result)

        self._calls.put(run)
        return await answer

    def last(self, function: Callable[[], object]) -> None:
        """Make one more call, ignore its result, and stop."""

        def run() -> None:
            with suppress(Exception):
                function()

        self._calls.put(run)
        self.stop()

    def stop(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


async def _in_thread(function: Callable[[], T]) -> T:
    worker = Worker("admin")
    try:
        return await worker.call(function)
    finally:
        worker.stop()


def _create(config: Mapping[str, Any], new: NewTopic) -> str | None:
    """Create a topic; return the name of the error, if any."""
    admin = AdminClient(dict(config))
    (created,) = admin.create_topics(
        [new], operation_timeout=QUERY_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        created.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None


def _delete(config: Mapping[str, Any], place: TopicPartition) -> tuple[int | None, str | None]:
    """Delete all records before an offset.

    Returns the start of the log on all replicas after it, or the name of the error.
    """
    admin = AdminClient(dict(config))
    (deleted,) = admin.delete_records(
        [place], operation_timeout=DELETION_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        return deleted.result().low_watermark, None
    except KafkaException as error:
        return None, error.args[0].name()


def _delete_topic(config: Mapping[str, Any], topic: str) -> str | None:
    """Delete a topic; return the name of the error if it may still exist."""
    admin = AdminClient(dict(config))  # it gives up its requests when it is destroyed
    (deleted,) = admin.delete_topics(
        [topic], operation_timeout=DELETION_TIMEOUT_S, request_timeout=QUERY_TIMEOUT_S
    ).values()
    try:
        deleted.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None


def _alter(config: Mapping[str, Any], topic: str, settings: Mapping[str, str]) -> str | None:
    """Change settings of a topic; return the name of the error if it may not have them."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient(dict(config))
    (altered,) = admin.incremental_alter_configs([asked], request_timeout=QUERY_TIMEOUT_S).values()
    try:
        altered.result()
    except KafkaException as error:
        name: str = error.args[0].name()
        return name
    return None


def _place(key: str, offset: int) -> TopicPartition:
    return TopicPartition(*split(key), OFFSET_BEGINNING if offset < 0 else offset)


def _resolve(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Have the event loop call a function, unless the loop has ended."""
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            if not loop.is_closed():
                raise
