"""The headers of record batches (format v2) in the answer to a fetch."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = struct.Struct(">qiibIhiqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, two timestamps."""
_COUNTED_FROM = 12
"""The length does not count the bytes before this position."""


class Batch(NamedTuple):
    """What a reader needs of a batch."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    max_timestamp: int


def batches(data: bytes) -> Iterator[Batch]:
    """Yield the batches of a fetch; the last one may be cut off, and is left out then."""
    at = 0
    while at + _HEADER.size <= len(data):
        base, length, epoch, _, _, _, delta, _, largest = _HEADER.unpack_from(data, at)
        if at + _COUNTED_FROM + length > len(data):
            return
        yield Batch(base, base + delta + 1, epoch, largest)
        at += _COUNTED_FROM + length
