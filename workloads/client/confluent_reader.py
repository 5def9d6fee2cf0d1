"""A consumer of librdkafka that is assigned once, and the thread that makes its blocking calls."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from workloads.client import payload
from workloads.client.common import (
    POLL_RECORDS_MAX,
    POLL_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    Records,
    split,
)
from workloads.client.confluent_threads import Worker


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
        """Return the position in a partition, and the high watermark requested from its leader."""
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


def _place(key: str, offset: int) -> TopicPartition:
    return TopicPartition(*split(key), OFFSET_BEGINNING if offset < 0 else offset)
