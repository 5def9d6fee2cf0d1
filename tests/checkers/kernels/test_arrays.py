"""Operations on arrays give the results of those that numpy has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.kernels import arrays
from checkers.kernels.rows import I64

LARGEST = (1 << 63) - 1


@st.composite
def columns(draw: st.DrawFn) -> I64:
    """A column whose numbers are close together or not, few or many, with or without repetitions;
    some begin or end at the limits of 64 bits."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    size = draw(st.sampled_from((0, 1, 2, 20, 300, 2000)))
    least = draw(st.sampled_from((-LARGEST - 1, -5, 0, 7, 1 << 40)))
    span = draw(st.sampled_from((1, 10, 500, 40_000, 1 << 20, 1 << 50, LARGEST - 5)))
    column = rng.integers(least, min(least + span, LARGEST), size, endpoint=True, dtype=np.int64)
    return np.sort(column) if draw(st.booleans()) else column


@given(columns(), columns())
def test_membership_is_that_of_numpy(values: I64, others: I64) -> None:
    """The same values are found, in a table or by sorting."""
    some = np.concatenate((values, others[::2]))
    assert arrays.is_in(some, others).tolist() == np.isin(some, others, kind="sort").tolist()


@given(columns())
def test_first_rows_are_those_of_unique(column: I64) -> None:
    """The distinct values, and the first row of each."""
    values, first = arrays.first_rows(column)
    expected = np.unique(column, return_index=True)
    assert (values.tolist(), first.tolist()) == tuple(array.tolist() for array in expected)


@given(columns(), st.integers(1, 9), st.booleans())
def test_pairs_are_distinct_only_if_they_are(values: I64, keys: int, once: bool) -> None:
    """A pair that occurs twice is never missed, and numbers that are close together are known to
    be distinct."""
    values = np.unique(values) if once else values
    key = np.arange(len(values), dtype=np.int32) % keys
    pairs = {*zip(key.tolist(), values.tolist(), strict=True)}
    found = arrays.are_distinct(key, values)
    assert not found or len(pairs) == len(values)
    assert found or not once


@given(columns())
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_the_order_is_stable(dtype: type[np.signedinteger], column: I64) -> None:
    """Equal numbers keep their order."""
    narrow = column.astype(dtype)
    assert (arrays.stable_order(narrow) == np.argsort(narrow, kind="stable")).all()


@given(columns(), columns())
def test_places_are_those_of_a_binary_search(ordered: I64, values: I64) -> None:
    """Values below, between, among and above the ordered numbers have the same places."""
    ordered = np.sort(ordered)
    some = np.concatenate((values, ordered, ordered))
    assert (arrays.places(ordered, some) == np.searchsorted(ordered, some)).all()


@given(st.permutations(range(40)), st.integers(0, 40))
def test_the_order_of_rows_is_that_of_a_sort(rows: list[int], count: int) -> None:
    """Distinct row numbers have one order."""
    some = np.array(rows[:count], dtype=np.int32)
    assert arrays.order_of_rows(some, 40).tolist() == np.argsort(some).tolist()


@given(columns(), st.sampled_from((1, 3, 1 << 20, 1 << 45)), st.booleans())
def test_the_order_by_two_columns_is_that_of_numpy(number: I64, step: int, is_sorted: bool) -> None:
    """Rows are in the order of keys, then of numbers, and equal rows keep their order."""
    key = np.random.default_rng(len(number)).integers(0, 5, len(number)) * step
    number = np.sort(number) if is_sorted else number
    found = arrays.order_within(key, number)
    assert found.tolist() == np.lexsort((number, key)).tolist()
