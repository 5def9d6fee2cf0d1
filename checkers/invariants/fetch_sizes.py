"""``fetched-within-limits``: how much a fetch returns (KIP-74).

A response has no more bytes of records than the reader asks for, in all and of each partition. The
first batch is the exception: it is returned however large it is, because a reader could not go on
without it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

UNKNOWN: Final = -1
"""Stands for the limit of a partition that a request in a fetch session did not name."""


class Part(NamedTuple):
    """The records of one partition in a response."""

    key: str
    limit: int
    """``partition_max_bytes``, or `UNKNOWN`."""
    batches: Sequence[int]
    """The size of each batch in bytes."""


def beyond(limit: int, parts: Sequence[Part]) -> tuple[str, str] | None:
    """Return a partition with too many bytes and why they are too many, or ``None``.

    ``limit`` is the smaller one of ``max_bytes`` and the broker's ``fetch.max.bytes``.
    """
    filled = [part for part in parts if part.batches]
    for part in filled:
        size = sum(part.batches)
        if part.limit != UNKNOWN and size > part.limit and len(part.batches) > 1:
            return part.key, f"{len(part.batches)} batches have {size} bytes, of {part.limit}"
    size = sum(sum(part.batches) for part in filled)
    if size > limit and sum(len(part.batches) for part in filled) > 1:
        return filled[-1].key, f"a response has {size} bytes of records, of {limit}"
    large = [part for part in filled if UNKNOWN != part.limit < sum(part.batches)]
    if len(large) > 1:
        return large[1].key, (
            f"a batch of {large[1].batches[0]} bytes is larger than {large[1].limit}, after one "
            f"that is too large in {large[0].key}"
        )
    return None
