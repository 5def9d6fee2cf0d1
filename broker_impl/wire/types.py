"""Names for what travels between the layers."""  # noqa: A005 - only ever imported by its full name

from typing import NamedTuple
from uuid import UUID

Buffer = bytes | bytearray | memoryview
"""Bytes that already lie in memory; whoever takes one promises not to copy it without need."""

NO_UUID = UUID(int=0)
"""What stands where an id may be left out."""

Offset = int
Epoch = int
BrokerId = int


class TopicPartition(NamedTuple):
    """One partition of one topic; written ``topic-partition``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
