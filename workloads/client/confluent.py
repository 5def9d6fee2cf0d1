"""librdkafka (confluent-kafka) as the client of a process: threads inside, asyncio outside.

A process owns at most one producer, which is discarded after its first failure, and one consumer.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from workloads.client import confluent_admin, outcome
from workloads.client.base_client import PlainClient
from workloads.client.common import Settings, split
from workloads.client.confluent_reader import Reader, watermarks
from workloads.client.confluent_settings import QUIET, of_outsider, refusal
from workloads.client.confluent_threads import in_thread
from workloads.client.confluent_writer import Writer

__all__ = ["ConfluentClient", "refusal"]


class ConfluentClient(PlainClient):
    """A process that uses librdkafka."""

    FAILURES = (KafkaException,)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.topic)
        name = settings.name
        common = {
            **QUIET,
            "bootstrap.servers": settings.bootstrap,
            "client.id": name,
            **settings.properties,
        }
        self._producer_config = {**common, **settings.producer}
        self._consumer_config = {**common, "group.id": name, **settings.consumer}
        self._reader_config = of_outsider(self._consumer_config)
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

    def _writes(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._producer_config, self._form)
        return self._writer

    def _reads(self) -> Reader:
        assert self._reader is not None, "partitions are assigned to a process before it reads"
        return self._reader

    async def _assign(self, keys: list[str]) -> str | None:
        """Assign with a new consumer, which continues from the positions of the one before it."""
        old, places = self._reader, {} if self._reader is None else self._reader.positions
        if old is not None:
            old.leave()
        places = {key: places.get(key, -1) for key in keys}
        self._reader = Reader(self._reader_config, places, self._form)
        await self._reader.open()
        return None

    async def _places(self, key: str) -> dict[str, int]:
        return await in_thread(lambda: watermarks(self._reader_config, key))

    async def _create_topic(
        self, topic: str, partitions: int
    ) -> tuple[outcome.Outcome, str | None]:
        size: dict[str, Any] = {"replication_factor": self._replicas}
        if self._placed:
            size = {"replica_assignment": [self._placed] * partitions}
        new = NewTopic(topic, num_partitions=partitions, **size, config=self._topic_config)
        error = await in_thread(lambda: confluent_admin.create(self._admin_config, new))
        return outcome.of_creation(error), error

    async def _delete_records(
        self, key: str, offset: int
    ) -> tuple[outcome.Outcome, int | None, str | None]:
        place = TopicPartition(*split(key), offset)
        low, error = await in_thread(
            lambda: confluent_admin.delete_records(self._admin_config, place)
        )
        return outcome.of_records_deletion(error), low, error

    async def _delete_topic(self, topic: str) -> tuple[outcome.Outcome, str | None]:
        error = await in_thread(lambda: confluent_admin.delete_topic(self._admin_config, topic))
        return outcome.of_topic_deletion(error), error

    async def _alter_topic(self, topic: str, settings: Mapping[str, str]) -> str | None:
        return await in_thread(
            lambda: confluent_admin.alter_topic(self._admin_config, topic, settings)
        )
