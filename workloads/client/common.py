"""What all clients have in common: what they are made of, how long they wait, how they answer."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from model import lives
from model.op import Op
from workloads.client.outcome import Outcome

POLL_RECORDS_MAX = 1000
"""Records per poll at most."""
POLL_TIMEOUT_S = 0.1
"""How long a poll gathers records; and the pause between two attempts to find the cluster."""
QUERY_TIMEOUT_S = 5.0
"""How long to wait for offsets, for a consumer to find the cluster, or for a topic's creation."""
DELETION_TIMEOUT_S = 3.0
"""How long a leader may wait for other replicas to delete records, too."""


class Settings(NamedTuple):
    """What the client of a process is made of; all settings by Kafka's and librdkafka's names."""

    bootstrap: str
    process: int
    """Its number."""
    producer: Mapping[str, str]
    consumer: Mapping[str, str]
    topic: Mapping[str, str]
    """Of the topics that it creates."""


Place = int | list[int]
"""An offset to commit; with metadata that is a number, the two of them."""
Records = dict[str, list[list[int]]]
"""By key: offsets and values, in the order they came."""
DIGITS_MAX = 18
"""Metadata of more cannot be a number of the history's."""
FOREIGN = -1
"""Stands for metadata that is no such number."""


def silenced(library: str) -> logging.Logger:
    """The logger of a library, which nobody hears: what it has to say is in the history."""
    logger = logging.getLogger(library)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    return logger


def split(key: str) -> tuple[str, int]:
    """Topic and partition of a key, as brokers know them."""
    life, _, partition = key.rpartition("-")
    return lives.topic_of(life), int(partition)


def to_commit(place: Place) -> tuple[int, str]:
    """Offset and metadata as they go over the wire."""
    offset, metadata = place if isinstance(place, list) else (place, 0)
    return offset, str(metadata) if metadata else ""


def as_committed(offset: int, metadata: str | None) -> Place:
    """What a coordinator has told, as the history has it."""
    if not metadata:
        return offset
    is_ours = metadata.isdecimal() and metadata.isascii() and len(metadata) <= DIGITS_MAX
    return [offset, int(metadata) if is_ours else FOREIGN]


def completed(op: Op, kind: Outcome, value: list[Any] | None, error: str | None = None) -> Op:
    """The completion of an operation."""
    return msgspec.structs.replace(op, type=kind, value=value, error=error)
