"""Which records of a large partition a task gets: those at some offsets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from checkers.kernels.rows import I64, UNKNOWN, Bools

_NONE = np.zeros(0, dtype=np.int64)


class Kept(NamedTuple):
    """Intervals of offsets, ascending and apart from each other."""

    begins: I64
    ends: I64
    """Where each interval ends, exclusive."""
    unplaced: bool
    """Whether records without a known offset are kept, too."""

    def has(self, offset: I64) -> Bools:
        """Return which records are kept, given the offset of each."""
        found: Bools = np.where(offset == UNKNOWN, self.unplaced, self.interval(offset) >= 0)
        return found

    def interval(self, offset: I64) -> I64:
        """Return the number of the interval of each offset; -1 for those that are in none."""
        row = np.searchsorted(self.begins, offset, side="right") - 1
        found: I64 = np.where(offset < np.append(self.ends, UNKNOWN)[row], row, -1)
        return found

    def before(self, offset: int) -> int:
        """Return the last offset that is kept before one that is not; -1 without any."""
        row = int(np.searchsorted(self.begins, offset, side="right")) - 1
        return int(self.ends[row]) - 1 if row >= 0 else UNKNOWN


NOTHING = Kept(_NONE, _NONE, unplaced=False)


def joined(intervals: Sequence[tuple[int, int]], offsets: I64) -> Kept:
    """Return the offsets of these intervals, in any order, and single ones besides."""
    begins = np.array([begin for begin, _ in intervals], dtype=np.int64)
    ends = np.array([end for _, end in intervals], dtype=np.int64)
    begins, ends = np.concatenate((begins, offsets)), np.concatenate((ends, offsets + 1))
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    apart = np.append(True, begins[1:] > ends[:-1])[: len(begins)]
    last = np.append(apart[1:], True)[: len(begins)]
    return Kept(begins[apart], ends[last], unplaced=True)
