"""Map a group or transactional id to its coordinator's partition, by Java's hash of the name."""

from typing import Final

_INT32: Final = 1 << 32
_INT32_MIN: Final = -(1 << 31)


def java_hash(name: str) -> int:
    """Java's `String.hashCode`: computed over UTF-16 units, as a signed 32-bit integer."""
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    number = 0
    for unit in units:
        number = (31 * number + unit) % _INT32
    return number - _INT32 if number >= _INT32 // 2 else number


def partition_of(name: str, partitions: int) -> int:
    """The internal topic's partition whose leader coordinates this group or transactional id.

    The one hash without a positive counterpart counts as 0, as in Kafka.
    """
    number = java_hash(name)
    return (0 if number == _INT32_MIN else abs(number)) % partitions
