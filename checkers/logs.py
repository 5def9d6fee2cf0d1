"""Splits the rows of all partitions into one log per partition, for both executors."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from checkers.kernels.arrays import I32
from checkers.kernels.compact import AllPolls, AllSends
from checkers.kernels.faults import FaultInterval
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, Begins, CatchUp, Polls, Resets, Sends
from checkers.kernels.steps import Group, Steps

_R = TypeVar("_R", Resets, Steps)


class ByKey:
    """Finds the rows of each partition in a table, in their order."""

    def __init__(self, key: I64 | I32, keys: int) -> None:
        small = key.astype(np.int16) if keys < 1 << 15 else key  # 16 bits: a radix sort
        self._order = np.argsort(small, kind="stable").astype(np.int32)
        self._bounds = np.concatenate(([0], np.cumsum(np.bincount(key, minlength=keys))))

    def rows(self, key: int) -> I32:
        """Return the row numbers of one partition."""
        return self._order[self._bounds[key] : self._bounds[key + 1]]


class Rows(NamedTuple):
    """Tables of rows of all partitions, each with the partition of each row."""

    sends: tuple[Sends | AllSends, I64 | I32]
    polls: tuple[Polls | AllPolls, I64 | I32]
    steps: tuple[Steps, I64]
    resets: tuple[Resets, I64]
    begins: tuple[Begins, I64]


class Key(NamedTuple):
    """What is known of a partition apart from its rows."""

    number: int
    name: str
    caught_up: CatchUp | None
    is_deleted: bool
    is_compacted: bool
    faults: tuple[FaultInterval, ...]
    groups: tuple[Group, ...]


class Logs:
    """Makes the logs of partitions, whose numbers are all below ``count``."""

    def __init__(self, rows: Rows, count: int) -> None:
        self._rows = rows
        self._by_key = tuple(ByKey(key, count) for _, key in rows)
        none = np.zeros(0, dtype=np.int32)
        self._no_steps, self._no_resets = rows.steps[0].where(none), rows.resets[0].where(none)

    def log(self, key: Key) -> Log:
        """Return the log of a partition."""
        rows = self._rows
        sends, polls, steps, resets, begins = (each.rows(key.number) for each in self._by_key)
        return Log(
            key=key.name,
            sends=rows.sends[0].where(sends),
            polls=rows.polls[0].where(polls),
            resets=_chosen(rows.resets[0], resets, self._no_resets),
            caught_up=key.caught_up,
            faults=key.faults,
            steps=_chosen(rows.steps[0], steps, self._no_steps),
            groups=key.groups,
            begins=rows.begins[0].where(begins),
            is_deleted=key.is_deleted,
            is_compacted=key.is_compacted,
        )


def logs(rows: Rows, keys: Sequence[Key], count: int) -> Iterator[Log]:
    """Yield the log of each of these partitions; all their numbers are below ``count``."""
    made = Logs(rows, count)
    return (made.log(key) for key in keys)


def _chosen(rows: _R, chosen: I32, none: _R) -> _R:
    """Return the chosen rows; for none of them, which is frequent, always the same value."""
    return rows.where(chosen) if len(chosen) else none
