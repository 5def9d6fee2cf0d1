"""What a value stands for in a compacted partition: a record of some key, or its tombstone.

Values are unique per partition and tell the key that they were written to, so that whoever sees two
of them knows whether one replaces the other.
"""

from typing import Any

KEYS_MAX = 100
"""How many a partition can have, with that of the records without a key."""
NO_KEY = KEYS_MAX - 1
"""Of records without a key, which no compacted partition takes."""


def value_of(number: int, key: int, *, deletes: bool) -> int:
    """The value that stands for the record of this number and key; ``deletes``: for a tombstone."""
    assert number >= 0, "numbers are counted"
    assert 0 <= key < KEYS_MAX, "keys are few"
    return (number * KEYS_MAX + key) * 10 + deletes


def key_of(value: Any) -> Any:
    """The key of the record that a value stands for; of each, if they are an array."""
    return value // 10 % KEYS_MAX


def deletes(value: Any) -> Any:
    """Is it a tombstone? Of each, if they are an array."""
    return value % 10 == 1
