"""Operations on arrays that numpy does not have, or does slowly."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

FEW = 256
"""Number of rows below which the number of numpy calls decides how long an operation takes."""


BLOCK = 1 << 19
"""Number of rows that are handled together, because numpy allocates temporary columns."""

TABLE = 1 << 23
"""Number of entries of a table of numbers up to which it is used in place of sorting."""
SPARSE = 64
"""Number of entries of such a table per number."""
DISTINCT = 1 << 27
"""Number of entries, of one byte each, up to which a table shows whether numbers are distinct."""


def is_in(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of the values are among others, like ``np.isin``, but faster for a few
    values."""
    if len(values) + len(others) > FEW:
        is_dense = values.dtype.kind == "i" and _is_dense(others)
        blocks = np.split(values, range(BLOCK, len(values), BLOCK))
        kind: Literal["table"] | None = "table" if is_dense else None
        return np.concatenate([np.isin(block, others, kind=kind) for block in blocks])
    if not len(others):
        return np.zeros(len(values), dtype=np.bool_)
    ordered = np.sort(others)
    place = ordered.searchsorted(values)
    place[place == len(ordered)] = 0
    found: NDArray[np.bool_] = ordered[place] == values
    return found


def _is_dense(values: NDArray[Any]) -> bool:
    """Return whether a table with an entry for each number between the values is small."""
    if values.dtype.kind != "i" or len(values) <= FEW:
        return False
    return int(values.max()) - int(values.min()) < min(TABLE, SPARSE * len(values))


def changes(column: NDArray[Any]) -> NDArray[np.bool_]:
    """True at the first row of a sorted column, and where its value differs from the row before."""
    changed = np.empty(len(column), dtype=np.bool_)
    changed[:1] = True
    np.not_equal(column[1:], column[:-1], out=changed[1:])
    return changed


def distinct(column: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of a column, ascending.

    The first use of ``np.unique`` imports ``numpy.ma``, which takes longer than to judge a small
    history.
    """
    ordered = np.sort(column)
    return ordered[changes(ordered)]


def stable_order(column: NDArray[Any]) -> I64:
    """Return the order of a column of integers, like a stable ``argsort``, which is ten times as
    fast for numbers of 16 bits."""
    if column.dtype.itemsize > 2 and len(column) > FEW:
        least = column.min()
        if int(column.max()) - int(least) < 1 << 16:
            return np.argsort((column - least).astype(np.uint16), kind="stable")
    return np.argsort(column, kind="stable")


def order_within(key: NDArray[Any], number: NDArray[Any]) -> I64:
    """Return the order by two columns of integers, like ``np.lexsort((number, key))``, but faster
    for few different keys, in particular where the numbers of each key are in order already."""
    if len(key) <= FEW:
        return np.lexsort((number, key))
    order = stable_order(key)
    key, number = key.take(order), number.take(order)
    falls = number[1:] < number[:-1]
    falls &= key[1:] == key[:-1]
    if not falls.any():
        return order
    least, width = int(number.min()), int(number.max()) - int(number.min()) + 1
    first, last = int(key[0]), int(key[-1])
    if (last - first + 1) * width >= 1 << 63:
        inner = np.lexsort((number, key))
    else:
        codes = (key - first).astype(np.int64) * width + (number - least)
        inner = codes.argsort(kind="stable")
    ordered: I64 = order.take(inner)
    return ordered


def order_of_rows(rows: NDArray[Any], count: int) -> I32:
    """Return the order of distinct row numbers below ``count``, like ``argsort``, but faster for
    many of them."""
    place = np.full(count, -1, dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    return place[place >= 0]


def are_distinct(column: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether it is certain that no pair of numbers of two columns occurs twice.

    ``False`` means nothing: the numbers may be too far apart for a quick answer.
    """
    if not len(column):
        return True
    width = int(column.max()) - int(column.min()) + 1
    least = int(other.min())
    size = width * (int(other.max()) - least + 1)
    if size > max(FEW, min(DISTINCT, SPARSE * len(column))):
        ordered = np.sort(other)
        return not (ordered[1:] == ordered[:-1]).any()
    seen = np.zeros(size, dtype=np.bool_)
    for begin in range(0, len(column), BLOCK):
        rows = slice(begin, begin + BLOCK)
        seen[(other[rows] - least) * width + (column[rows] - column.min())] = True
    return int(np.count_nonzero(seen)) == len(column)


def places(ordered: I64, values: I64) -> I64:
    """Return how many numbers of an ascending column are less than each value, like
    ``np.searchsorted``, but with a table where that is faster."""
    if len(values) <= FEW or not len(ordered):
        return np.searchsorted(ordered, values)
    least, most = int(ordered[0]), int(ordered[-1])
    if most - least >= min(TABLE, 3 * len(values)):
        return np.searchsorted(ordered, values)
    below = np.zeros(most - least + 2, dtype=np.int64)
    np.cumsum(np.bincount(ordered - least), out=below[1:])
    inside: I64 = below[np.clip(values, least, most + 1) - least]
    return inside


def first_rows(column: I64) -> tuple[I64, I64]:
    """The distinct values of a column, ascending, and the first row of each. ``np.unique`` returns
    the same, and takes four times as long for a few rows."""
    if _is_dense(column):
        least = column.min()
        table = np.full(int(column.max() - least) + 1, -1, dtype=np.int32)
        table[column[::-1] - least] = np.arange(len(column) - 1, -1, -1, dtype=np.int32)
        place = np.flatnonzero(table >= 0)
        return place + least, table[place].astype(np.int64)
    order = column.argsort(kind="stable")
    ordered = column[order]
    is_first = changes(ordered)
    return ordered[is_first], order[is_first]


def last_before(process: I64, event: I64, of: I64, before: I64) -> I64:
    """Return for each process in ``of`` and event in ``before`` the row of that process's last
    event before it, or -1."""
    found = np.full(len(of), -1)
    if not len(process):
        return found
    count = len(of)
    processes, when = np.concatenate((of, process)), np.concatenate((before, event))
    # Equal events are not before.
    order = np.lexsort((np.arange(len(when)) >= count, when, processes))
    is_event = order >= count
    last = np.maximum.accumulate(np.where(is_event, np.arange(len(order)), -1))
    asked = np.flatnonzero(~is_event & (last >= 0))
    asked = asked[processes[order[asked]] == processes[order[last[asked]]]]
    found[order[asked]] = order[last[asked]] - count
    return found
