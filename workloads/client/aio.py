"""The client that uses unmodified aiokafka, with real sockets or in a simulation.

A process owns at most one producer, which is discarded after its first failure, and one consumer.
The consumer uses manual assignment, belongs to no group and commits no offsets.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError

from workloads.client import aio_admin, outcome
from workloads.client.aio_connection import connection_arguments
from workloads.client.aio_errors import name_of
from workloads.client.aio_reader import Reader
from workloads.client.aio_settings import (
    DELIVERY_TIMEOUT,
    consumer_arguments,
    producer_arguments,
    refusal,
)
from workloads.client.aio_writer import Writer
from workloads.client.base_client import PlainClient
from workloads.client.common import Settings, silenced, split

__all__ = ["AioClient", "refusal"]

silenced("aiokafka")


class AioClient(PlainClient):
    """A process that uses aiokafka."""

    FAILURES = (KafkaError, TimeoutError)

    def __init__(self, settings: Settings) -> None:
        """Raises :class:`~workloads.client.aio_settings.BadSetting`."""
        super().__init__(settings.topic)
        self._common = {
            "bootstrap_servers": settings.bootstrap,
            "client_id": settings.name,
            **connection_arguments(settings.properties),
        }
        self._producer_arguments = producer_arguments(settings.producer)
        self._delivery_timeout_s = self._producer_arguments.pop(DELIVERY_TIMEOUT) / 1000
        self._consumer_arguments = consumer_arguments(settings.consumer)
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def close(self) -> None:
        """Discard queued and unacknowledged records, and close all connections in limited time."""
        self._alive = False
        used, self._writer, self._reader = (self._writer, self._reader), None, None
        await asyncio.gather(*(each.close() for each in used if each is not None))

    def _name_of(self, error: Exception) -> str:
        return name_of(error)

    def _writes(self) -> Writer:
        if self._writer is None:
            arguments = {**self._common, **self._producer_arguments}
            self._writer = Writer(arguments, self._delivery_timeout_s, self._form)
        return self._writer

    def _reads(self) -> Reader:
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
        return await aio_admin.create(self._common, new)

    async def _delete_records(
        self, key: str, offset: int
    ) -> tuple[outcome.Outcome, int | None, str | None]:
        return await aio_admin.delete_records(self._common, TopicPartition(*split(key)), offset)

    async def _delete_topic(self, topic: str) -> tuple[outcome.Outcome, str | None]:
        return await aio_admin.delete_topic(self._common, topic)

    async def _alter_topic(self, topic: str, settings: Mapping[str, str]) -> str | None:
        return await aio_admin.alter_topic(self._common, topic, settings)
