"""Which partition of an internal topic a group or transactional id belongs to."""

import pytest

from broker_impl.coordinator import partitioner


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("\u00fc", 252),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # a surrogate pair in UTF-16
        ("polygenelubricants", -(2**31)),
    ],
)
def test_java_hash(name: str, expected: int) -> None:
    """`String.hashCode` in 32 bits: 31 times the hash so far, plus the next UTF-16 code unit."""
    assert partitioner.java_hash(name) == expected


def test_a_partition_is_never_negative() -> None:
    """The one hash whose absolute value does not fit into 32 bits counts as 0."""
    assert partitioner.partition_of("polygenelubricants", 50) == 0
    assert partitioner.partition_of("hello", 50) == 99162322 % 50
