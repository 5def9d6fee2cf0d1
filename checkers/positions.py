"""When readers gave up their positions in partitions, and when they took up positions.

Each assignment of a process gives up its positions in all partitions that it does not name. There
are partitions times assignments of these resets, but checkers need one only where something was
polled after it. So each process and partition has as many resets as polls of that partition, or as
assignments, whichever is less. All partitions are handled together.
"""

from typing import NamedTuple

import numpy as np

from checkers.columns import spread
from checkers.kernels.arrays import distinct
from checkers.kernels.rows import I64, Begins, Bools, Resets


class Polling(NamedTuple):
    """Operations that looked at a partition; a row may occur more than once."""

    key: I64
    process: I64
    op: I64


def begins(assigned: tuple[I64, I64, I64], operation: tuple[I64, I64]) -> tuple[Begins, I64]:
    """Return which process was assigned which partition, and when that operation was invoked.

    ``operation`` holds the last and the first event of each operation.
    """
    process, event, key = assigned
    op, invoked = operation
    return Begins(process, invoked[np.searchsorted(op, event)]), key


def resets(
    assignments: tuple[I64, I64], assigned: tuple[I64, I64, I64], polling: Polling
) -> tuple[Resets, I64]:
    """Return the resets by assignments, and the partition of each.

    ``assignments`` hold a process and an event, in the order of events; ``assigned`` also holds the
    partition that each names.
    """
    rounds = _Rounds(assignments, assigned)
    pairs = _Pairs(polling)
    process, key = pairs.process, pairs.key
    rank = rounds.rank(process)
    passed = rounds.count(rank) - rounds.named(key, rank)
    few = (rank >= 0) & (passed > 0) & (passed <= pairs.looks)
    many = (rank >= 0) & (passed > pairs.looks)
    place, pair = spread(rounds.begin[rank[few]], rounds.begin[rank[few] + 1])
    every = ~rounds.names(key[few][pair], place)
    asked, pair_asked = pairs.rows(many)
    last = rounds.last(key[pair_asked], rank[pair_asked], polling.op[asked])
    known = last >= 0
    reset_place = np.concatenate((place[every], last[known]))
    reset_key = np.concatenate((key[few][pair[every]], key[pair_asked][known]))
    _, first = np.unique(reset_key * (len(rounds.event) + 1) + reset_place, return_index=True)
    return (
        Resets(rounds.process[reset_place[first]], rounds.event[reset_place[first]]),
        reset_key[first],
    )


class _Pairs:
    """The pairs of a process and a partition that it polled."""

    def __init__(self, polling: Polling) -> None:
        names = distinct(polling.process)
        self._code = np.searchsorted(names, polling.process)
        self._code += polling.key * len(names)
        self._codes, self.looks = np.unique(self._code, return_counts=True)
        """``looks``: how often the process of each pair polled its partition."""
        self.key, number = np.divmod(self._codes, max(len(names), 1))
        self.process = names[number]

    def rows(self, pairs: Bools) -> tuple[I64, I64]:
        """Return the rows of some pairs, and the pair of each row."""
        if not pairs.any():
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        rows = np.flatnonzero(np.isin(self._code, self._codes[pairs]))
        return rows, np.searchsorted(self._codes, self._code[rows])


class _Rounds:
    """The assignments, sorted by process and event. Those of each process start at ``begin``."""

    def __init__(self, assignments: tuple[I64, I64], assigned: tuple[I64, I64, I64]) -> None:
        self._order = np.argsort(assignments[0], kind="stable")
        self.process, self.event = (column[self._order] for column in assignments)
        self._when = assignments[1]
        self._names, begin = np.unique(self.process, return_index=True)
        self.begin = np.append(begin, len(self.process))
        place = np.empty_like(self._order)
        place[self._order] = np.arange(len(place))
        _, event, key = assigned
        self._size = len(self.process) + 1
        codes = key * self._size + place[np.searchsorted(self._when, event)]
        self._named = distinct(codes)
        """Partition and place of each assigned partition, as one number."""
        named_place = self._named % self._size
        self._named_pair = np.sort(
            self._pair(self._named // self._size, self._rank_at(named_place))
        )
        breaks = np.ones(len(self._named), dtype=np.bool_)
        breaks[1:] = np.diff(self._named) != 1
        breaks |= np.isin(named_place, self.begin)
        rows = np.arange(len(self._named))
        self._run = named_place[np.maximum.accumulate(np.where(breaks, rows, 0))]
        """For each number in ``_named``: the first place from which on every assignment names its
        partition."""
        self._event_code = self._rank_at(np.arange(len(self.event))) * self._size + self._order

    def _rank_at(self, place: I64) -> I64:
        rank: I64 = np.searchsorted(self.begin, place, side="right") - 1
        return rank

    def _pair(self, key: I64, rank: I64) -> I64:
        return key * (len(self._names) + 1) + rank

    def rank(self, process: I64) -> I64:
        """Return the rank of each process among those with assignments, or -1."""
        if not len(self._names):
            return np.full(len(process), -1)
        rank = np.minimum(np.searchsorted(self._names, process), len(self._names) - 1)
        return np.where(self._names[rank] == process, rank, -1)

    def count(self, rank: I64) -> I64:
        """Return how many assignments each process has; without meaning where it has none."""
        count: I64 = self.begin[rank + 1] - self.begin[rank]
        return count

    def named(self, key: I64, rank: I64) -> I64:
        """Return how many assignments of a process name a partition."""
        pair = self._pair(key, rank)
        first, last = (np.searchsorted(self._named_pair, pair, side) for side in ("left", "right"))
        return last - first

    def names(self, key: I64, place: I64) -> Bools:
        """Return whether the assignment at a place names a partition."""
        return np.isin(key * self._size + place, self._named)

    def last(self, key: I64, rank: I64, op: I64) -> I64:
        """Return the place of a process's last assignment before an event that leaves a partition
        out; -1 if there is none."""
        code = rank * self._size + np.searchsorted(self._when, op)
        place = np.searchsorted(self._event_code, code) - 1
        row = np.minimum(np.searchsorted(self._named, key * self._size + place), len(self._run) - 1)
        if len(self._named):
            named = self._named[row] == key * self._size + place
            place = np.where(named, self._run[row] - 1, place)
        return np.where(place >= self.begin[rank], place, -1)
