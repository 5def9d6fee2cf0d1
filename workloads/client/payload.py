"""A record names itself: its value is the number, its key the partition it was written for.

A record that comes back from another partition, or with other bytes, is read as a negative number,
which nobody ever writes: checkers see a phantom.
"""

import zlib

_LENGTH = 8


def encode(key: str, value: int) -> tuple[bytes, bytes]:
    """Key and value of the record that stands for ``value`` in partition ``key``."""
    assert value >= 0, "negative numbers stand for what nobody wrote"
    return key.encode(), value.to_bytes(_LENGTH, "big")


def decode(key: str, record_key: bytes | None, record_value: bytes | None) -> int:
    """The number that a record read from partition ``key`` stands for."""
    if record_key == key.encode() and record_value is not None and len(record_value) == _LENGTH:
        value = int.from_bytes(record_value, "big", signed=True)
        if value >= 0:
            return value
    return -1 - zlib.crc32((record_key or b"") + b"\0" + (record_value or b""))
