"""Names for what travels between the layers."""  # noqa: A005 - only ever imported by its full name

from typing import NamedTuple

Offset = int
Epoch = int
BrokerId = int


class TopicPartition(NamedTuple):
    """One partition of one topic; written ``topic-partition``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
