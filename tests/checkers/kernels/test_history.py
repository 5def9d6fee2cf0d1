"""Records are found by partition and value, in a table or by sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.kernels.history import Records

LARGEST = (1 << 63) - 1
NUMBERS = st.sampled_from((-LARGEST - 1, -1, 0, 1, 2, 3, 50, 1 << 59, 1 << 60, LARGEST))
"""A product of these with a number of partitions may not fit into 64 bits."""


@given(
    st.lists(st.tuples(st.integers(0, 3), st.one_of(NUMBERS, st.integers(0, 20)))),
    st.lists(st.tuples(st.integers(0, 3), st.one_of(NUMBERS, st.integers(-2, 22)))),
    st.sampled_from((4, 16)),
)
def test_the_first_row_of_a_record_is_found(
    known: list[tuple[int, int]], asked: list[tuple[int, int]], keys: int
) -> None:
    """The first row of each record, or -1, whatever the values are."""
    key, value = np.array(known, dtype=np.int64).reshape(-1, 2).T
    of, number = np.array(asked, dtype=np.int64).reshape(-1, 2).T
    found = Records(key, value, keys).find(of, number).tolist()
    assert found == [known.index(record) if record in known else -1 for record in asked]
