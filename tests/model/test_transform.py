"""An output's value identifies the input that it was made from."""

import pytest

from model import transform


@pytest.mark.parametrize("value", [0, 1, 10_000_000, 2**32])
@pytest.mark.parametrize("op", [0, 7, 9_999_999])
def test_an_output_tells_its_input(value: int, op: int) -> None:
    """An output identifies its input for every operation, and fits into 63 bits."""
    assert transform.input_of(transform.output(value, op)) == value
    assert transform.output(value, op) < 2**63


def test_every_attempt_makes_another_value() -> None:
    """Outputs of different inputs and operations are different."""
    made = {transform.output(value, op) for value in range(5) for op in range(50)}
    assert len(made) == 250
