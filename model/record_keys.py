"""Encodes record keys and tombstones in the integer values of compacted partitions.

Values are unique per partition and contain the record key that they were written to. A checker that
sees two values therefore knows whether one replaces the other.
"""

from typing import Any

KEYS_MAX = 100
"""The maximum number of record keys of a partition, including :data:`NO_KEY`."""
NO_KEY = KEYS_MAX - 1
"""Stands for records without a key, which compacted partitions reject."""


def value_of(number: int, key: int, *, deletes: bool) -> int:
    """Return the value of the record with this number and key; ``deletes`` marks a tombstone."""
    assert number >= 0, "numbers of records are not negative"
    assert 0 <= key < KEYS_MAX, "keys are from 0 to KEYS_MAX - 1"
    return (number * KEYS_MAX + key) * 10 + deletes


def key_of(value: Any) -> Any:
    """Return the record key in a value, or in each value of an array."""
    return value // 10 % KEYS_MAX


def deletes(value: Any) -> Any:
    """Return whether a value is a tombstone; element by element for an array."""
    return value % 10 == 1
