"""Which numbers an option accepts."""

from typing import Any

import pytest

from model import options

LEAST = {"count": 1, "share": 0.5}


@pytest.mark.parametrize(("count", "share"), [(1, 0.5), (10**9, 7)])
def test_enough_will_do(count: int, share: float) -> None:
    """A number of at least the minimum is accepted, and options without a minimum are ignored."""
    assert options.refusal({"count": count, "share": share, "colour": "x"}, LEAST) is None


@pytest.mark.parametrize("count", [0, -1, 1.0, "1", "x", True, None, [1]])
def test_a_count_is_whole(count: Any) -> None:
    """A count is a whole number, and not a text or a boolean."""
    told = options.refusal({"count": count, "share": 1.0}, LEAST)
    assert told == f"options: count={count}: must be a whole number of at least 1"


@pytest.mark.parametrize("share", [0.49, float("nan"), float("inf"), "0.5", False, None])
def test_a_number_has_an_end(share: Any) -> None:
    """A number is finite, and not NaN."""
    told = options.refusal({"count": 1, "share": share}, LEAST)
    assert told == f"options: share={share}: must be a number of at least 0.5"
