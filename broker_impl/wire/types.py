"""Types of the values that the layers exchange."""  # noqa: A005 - only ever imported by its full name

from typing import NamedTuple
from uuid import UUID

Buffer = bytes | bytearray | memoryview
"""Bytes in memory; a receiver of a buffer does not copy it without need."""

NO_UUID = UUID(int=0)
"""The value of a UUID field that is not set."""

Offset = int
Epoch = int
BrokerId = int


class TopicPartition(NamedTuple):
    """One partition of one topic; written as ``topic-partition``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
