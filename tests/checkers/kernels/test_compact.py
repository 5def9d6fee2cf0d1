"""The indices of events are made from their rows, or looked up where some are missing."""

from typing import Any

import numpy as np
import pytest

from checkers.kernels.compact import Operations


def operations(index: list[int]) -> Any:
    none = np.zeros(0, dtype=np.int32)
    return Operations(
        event_index=np.array(index, dtype=np.int64),
        event_ns=np.array(index, dtype=np.int64),
        first=none,
        last=none,
        process=none,
        f=(),
        f_code=none,
        outcome=none.astype(np.int8),
        completed=none.astype(np.bool_),
        txn=none.astype(np.bool_),
    )


@pytest.mark.parametrize("index", [[0, 1, 2, 3], [7, 8, 9, 10], [0, 1, 3, 4], [5, 6, 7, 1 << 40]])
def test_rows_have_the_indices_of_their_events(index: list[int]) -> None:
    """Also if the index does not count from 0, or does not have all numbers."""
    rows = np.array([3, 0, 2, 2], dtype=np.int32)
    found = operations(index).index_of(rows)
    assert found.tolist() == [index[row] for row in rows.tolist()]
    assert found.dtype == np.int64


def test_no_events_have_no_indices() -> None:
    """A history without events has none."""
    assert operations([]).index_of(np.zeros(0, dtype=np.int32)).tolist() == []
