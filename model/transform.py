"""What becomes of a value that is consumed, transformed and produced: whoever sees the output can
tell the input.

Values are unique per key, also those of attempts that came to nothing: so an output is made of the
input's value and of the operation that has made it.
"""

_OPERATIONS = 10_000_000
"""More than a history has events."""


def output(value: int, op: int) -> int:
    """The value that an operation, by the index of its invocation, makes of an input's."""
    assert value >= 0, "what nobody wrote is not sent on"
    return value * _OPERATIONS + op % _OPERATIONS


def input_of(value: int) -> int:
    """The input's value that an output was made of."""
    return value // _OPERATIONS
