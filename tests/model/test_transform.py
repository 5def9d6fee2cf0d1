"""What is made of a value tells what it was made of."""

import pytest

from model import transform


@pytest.mark.parametrize("value", [0, 1, 10_000_000, 2**32])
@pytest.mark.parametrize("op", [0, 7, 9_999_999])
def test_an_output_tells_its_input(value: int, op: int) -> None:
    """Whichever operation has made it; and it fits where values are kept."""
    assert transform.input_of(transform.output(value, op)) == value
    assert transform.output(value, op) < 2**63


def test_every_attempt_makes_another_value() -> None:
    """Of the same input, and of its neighbours."""
    made = {transform.output(value, op) for value in range(5) for op in range(50)}
    assert len(made) == 250
