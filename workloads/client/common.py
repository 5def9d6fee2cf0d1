"""What all clients share: their settings, their timeouts, and the form of their completions."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import msgspec

from model import racks, topic_incarnation
from model.connection import Connection
from model.op import Op
from model.plan import Plan
from workloads.client.outcome import Outcome

POLL_RECORDS_MAX = 1000
"""The largest number of records per poll."""
POLL_TIMEOUT_S = 0.1
"""How long a poll gathers records, and the pause between two attempts to find the cluster."""
QUERY_TIMEOUT_S = 5.0
"""How long to wait for offsets, for a consumer to find the cluster, or for a topic's creation."""
DELETION_TIMEOUT_S = 3.0
"""How long a leader may wait until other replicas have deleted the records, too."""


class Settings(NamedTuple):
    """The settings of a process's client, by Kafka's and librdkafka's names."""

    bootstrap: str
    process: int
    """The number of the process."""
    producer: Mapping[str, str]
    consumer: Mapping[str, str]
    topic: Mapping[str, str]
    """The settings of the topics that it creates."""
    properties: Mapping[str, str] = {}
    """The settings of its producers, consumers and admin clients alike."""
    prefix: str = ""
    """The beginning of its ``client.id``, and of the name of its own group."""

    @classmethod
    def of(cls, plan: Plan, connection: Connection, process: int, topic: Mapping[str, str]) -> Self:
        """Return the settings of a process of a plan."""
        bootstrap, properties, prefix = connection
        consumer = {**racks.of_client(process, plan.options), **plan.consumer}
        return cls(bootstrap, process, plan.producer, consumer, topic, properties, prefix)

    @property
    def name(self) -> str:
        """The process's ``client.id``."""
        return f"{self.prefix}process-{self.process}"


Place = int | list[int]
"""An offset to commit, or an offset and metadata that is a number."""
Records = dict[str, list[list[int]]]
"""Offsets and values by partition, in the order they came."""
DIGITS_MAX = 18
"""The largest number of digits of metadata that a history can have."""
FOREIGN = -1
"""Stands for metadata that is no such number."""


def silenced(library: str) -> logging.Logger:
    """Return a library's logger with its output turned off: the history has everything relevant."""
    logger = logging.getLogger(library)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    return logger


def split(key: str) -> tuple[str, int]:
    """Split a history's partition name into topic and partition number, as brokers know them."""
    life, _, partition = key.rpartition("-")
    return topic_incarnation.topic_of(life), int(partition)


def to_commit(place: Place) -> tuple[int, str]:
    """Return offset and metadata as they are sent to the coordinator."""
    offset, metadata = place if isinstance(place, list) else (place, 0)
    return offset, str(metadata) if metadata else ""


def as_committed(offset: int, metadata: str | None) -> Place:
    """Convert a committed offset and its metadata to the form of the history."""
    if not metadata:
        return offset
    is_ours = metadata.isdecimal() and metadata.isascii() and len(metadata) <= DIGITS_MAX
    return [offset, int(metadata) if is_ours else FOREIGN]


def completed(op: Op, kind: Outcome, value: list[Any] | None, error: str | None = None) -> Op:
    """Return the completion of an operation."""
    return msgspec.structs.replace(op, type=kind, value=value, error=error)
