"""The content of records, which identifies them: the value is a number, the key its partition.

A record that comes back from another partition, or with other bytes, is read as a negative number,
which no client ever writes: checkers report a phantom.

In a compacted partition records have record keys of four bytes (``model.record_keys``). Keys 0 and
1 have the same bytes as the keys of a transaction's control records, which are not keys of users.
The number is in a record's value, and in a header of a tombstone, which has no value.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from model import record_keys

_LENGTH = 8
_KEY_LENGTH = 4
_HEADER = "stands-for"

Headers = Sequence[tuple[str, Any]]


def encode(key: str, value: int) -> tuple[bytes, bytes]:
    """Return record key and record value of the number ``value`` in partition ``key``."""
    assert value >= 0, "negative numbers stand for records that no client wrote"
    return key.encode(), value.to_bytes(_LENGTH, "big")


def decode(key: str, record_key: bytes | None, record_value: bytes | None) -> int:
    """Return the number that a record read from partition ``key`` stands for."""
    if record_key == key.encode() and record_value is not None and len(record_value) == _LENGTH:
        value = int.from_bytes(record_value, "big", signed=True)
        if value >= 0:
            return value
    return _nobodys(record_key, record_value)


def _nobodys(record_key: bytes | None, record_value: bytes | None) -> int:
    return -1 - zlib.crc32((record_key or b"") + b"\0" + (record_value or b""))


class Form(NamedTuple):
    """How numbers are encoded as records of a topic, and decoded."""

    encode: Callable[[str, int], tuple[bytes | None, bytes | None, list[tuple[str, Any]]]]
    """Return record key, record value and headers for a number in a partition."""
    decode: Callable[[str, bytes | None, bytes | None, Headers], int]
    """Return the number that a record read from a partition stands for."""


PLAIN = Form(
    encode=lambda key, value: (*encode(key, value), []),
    decode=lambda key, record_key, record_value, headers: decode(key, record_key, record_value),
)
"""The form in topics that are not compacted."""


def _encode_keyed(key: str, value: int) -> tuple[bytes | None, bytes | None, list[tuple[str, Any]]]:
    number = record_keys.key_of(value)
    record_key = None if number == record_keys.NO_KEY else number.to_bytes(_KEY_LENGTH, "big")
    encoded = value.to_bytes(_LENGTH, "big") + key.encode()
    return (
        (record_key, None, [(_HEADER, encoded)])
        if record_keys.deletes(value)
        else (record_key, encoded, [])
    )


def _decode_keyed(
    key: str, record_key: bytes | None, record_value: bytes | None, headers: Headers
) -> int:
    encoded = dict(headers).get(_HEADER, b"") if record_value is None else record_value
    value = int.from_bytes(encoded[:_LENGTH], "big")
    if len(encoded) > _LENGTH and value < 1 << 63:
        written = _encode_keyed(key, value)
        if (record_key, record_value) == written[:2] and encoded[_LENGTH:] == key.encode():
            return value
    return _nobodys(record_key, encoded)


KEYED = Form(encode=_encode_keyed, decode=_decode_keyed)
"""The form in compacted topics."""


def form_of(topic: Mapping[str, str]) -> Form:
    """Return the form of records in topics with these settings."""
    return KEYED if "compact" in topic.get("cleanup.policy", "") else PLAIN
