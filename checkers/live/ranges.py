"""A set of integers as ranges: numbers that are handed out in order need little memory."""

from typing import NamedTuple

import numpy as np

from checkers.kernels.rows import I64, Bools

_EMPTY = np.zeros(0, dtype=np.int64)


class Ranges(NamedTuple):
    """Disjoint ranges, ascending, none of them next to another; ``last`` is included."""

    first: I64 = _EMPTY
    last: I64 = _EMPTY

    def has(self, numbers: I64) -> Bools:
        """Return which of these numbers are in the set."""
        place = np.searchsorted(self.first, numbers, side="right") - 1
        if not len(self.first):
            return np.zeros(len(numbers), dtype=np.bool_)
        found: Bools = (place >= 0) & (numbers <= self.last[np.maximum(place, 0)])
        return found

    def union(self, numbers: I64) -> "Ranges":
        """Return the set with these numbers added."""
        if not len(numbers):
            return self
        more = np.unique(numbers)
        first = np.concatenate((self.first, more))
        last = np.concatenate((self.last, more))
        order = np.argsort(first, kind="stable")
        first, reach = first[order], np.maximum.accumulate(last[order])
        begins = np.ones(len(first), dtype=np.bool_)
        begins[1:] = first[1:] - 1 > reach[:-1]
        ends = np.append(begins[1:], True)
        return Ranges(first[begins], reach[ends])


NONE = Ranges()
