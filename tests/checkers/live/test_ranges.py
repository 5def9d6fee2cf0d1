"""Ranges hold what was added, in few entries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.live.ranges import NONE

SETS = st.lists(st.lists(st.integers(-20, 40), max_size=12), max_size=6)


@given(SETS)
def test_a_union_has_exactly_what_was_added(added: list[list[int]]) -> None:
    """Membership is that of a set; ranges are disjoint, and never next to each other."""
    ranges, expected = NONE, set[int]()
    for numbers in added:
        ranges = ranges.union(np.array(numbers, dtype=np.int64))
        expected |= {*numbers}
    asked = np.arange(-25, 45)
    assert ranges.has(asked).tolist() == [int(n) in expected for n in asked]
    assert (ranges.first[1:] > ranges.last[:-1] + 1).all()


def test_numbers_in_order_are_one_range() -> None:
    """A partition's values, added a thousand at a time, need one entry."""
    ranges = NONE
    for first in range(0, 10_000, 1000):
        ranges = ranges.union(np.arange(first, first + 1000))
    assert len(ranges.first) == 1
