"""Whose coordinator is where: a name's partition of an internal topic, by Java's hash of it."""

from typing import Final

_INT32: Final = 1 << 32
_INT32_MIN: Final = -(1 << 31)


def java_hash(name: str) -> int:
    """What `String.hashCode` says: over UTF-16, as a signed 32-bit integer."""
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    number = 0
    for unit in units:
        number = (31 * number + unit) % _INT32
    return number - _INT32 if number >= _INT32 // 2 else number


def partition_of(name: str, partitions: int) -> int:
    """The partition, of so many, whose leader coordinates the group or transactional id.

    The one hash without a positive counterpart counts as 0, as in Kafka.
    """
    number = java_hash(name)
    return (0 if number == _INT32_MIN else abs(number)) % partitions
