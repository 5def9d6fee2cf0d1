"""Encodes an input's value in the output of a consume-transform-produce transaction.

Values are unique per partition, including those of attempts that failed. An output is therefore
made of the input's value and of the operation that produced it, and a checker can recover the
input.
"""

_OPERATIONS = 10_000_000
"""More than the number of events of any history."""


def output(value: int, op: int) -> int:
    """Return the value that an operation, given by its invocation's index, makes of an input."""
    assert value >= 0, "negative numbers stand for records that no client wrote"
    return value * _OPERATIONS + op % _OPERATIONS


def input_of(value: int) -> int:
    """Return the input value from which an output was made."""
    return value // _OPERATIONS
