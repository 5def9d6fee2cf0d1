"""The tasks of a judgement of transactions on lists: to cut a file, and to judge a bucket of keys.

A transaction has a number, the row of the file at which it begins, and a position in the history,
as in :mod:`checkers.isolation.regions`. Windows are ranges of positions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from checkers.distributed import packing
from checkers.distributed.runner import Parts
from checkers.isolation import buckets, columnar, gathered, list_rows, regions
from checkers.isolation.findings import Findings
from checkers.isolation.list_rows import NO_ROWS, ListRows, Longest
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.transactions import Transactions
from checkers.kernels.arrays import I64, stable_order
from model.history import BadHistory

_NONE = np.zeros(0, np.int64)


class Groups(NamedTuple):
    """Adjacent row groups of a file, which one task reads."""

    path: str
    first: int
    end: int


class Layout(NamedTuple):
    """How the work on a file is divided."""

    path: str
    buckets: int
    """The number of buckets of keys. Windows have the numbers after those of buckets."""
    begins: I64
    """The position at which each window but the first one begins, ascending."""

    def window(self, position: I64) -> I64:
        """Return the window of each position."""
        return np.searchsorted(self.begins, position, "right")


class Refused(NamedTuple):
    """Why rows cannot be judged."""

    why: str
    is_bad: bool
    """Whether the file is at fault, and not what the history says."""


class Dependencies(NamedTuple):
    """Dependencies for a window: of its later transactions, by positions."""

    source: I64
    target: I64
    over: I64
    """The earlier transactions, by dependency, of dependencies that lead back to a window before:
    they are in this window, or in one after it."""
    proven: I64
    """Transactions of the window that are in doubt, and happened."""


class Judged(NamedTuple):
    """What was found in a bucket, by the numbers of transactions."""

    found: Findings
    proven: I64
    doubtful: I64
    is_complete: bool


def cut(layout: Layout, groups: Groups) -> tuple[None, Parts]:
    """Read row groups, and cut them into buckets of keys and windows of transactions."""
    return None, _cut(layout, groups)


def _cut(layout: Layout, groups: Groups) -> Parts:
    try:
        rows, numbers = columnar.part(Path(groups.path), groups.first, groups.end)
    except BadHistory as error:
        yield 0, packing.dumped(Refused(str(error), is_bad=True))
        return
    txns, position = rows.txns, regions.positions(rows.txns)
    # Of a transaction, a bucket has to know the number, the outcome and the position.
    nothing = np.zeros(len(numbers), np.int64)
    plain = rows._replace(txns=Transactions(numbers, nothing, txns.outcome, nothing, position))
    divided = rows.buckets(layout.buckets)
    for bucket in range(layout.buckets):
        at = divided.rows(bucket)
        if len(at):
            yield bucket, packing.dumped(plain.of_rows(at)[0])
    numbered = txns._replace(event=numbers)
    for window, at in _grouped(layout.window(position)):
        yield layout.buckets + window, packing.dumped(numbered.where(at))


def _grouped(of: Any) -> "list[tuple[int, I64]]":
    """Return the rows of each group."""
    order = stable_order(of)
    numbers, begins = np.unique(of[order], return_index=True)
    ends = np.append(begins, len(of))[1:]
    return [
        (int(number), order[begin:end])
        for number, begin, end in zip(numbers, begins, ends, strict=True)
    ]


def split(
    layout: Layout, garbage: bool, number: int, parts: Sequence[bytes]
) -> tuple[Judged | Refused | None, Parts]:
    """Judge a bucket of keys, and cut its dependencies into windows; the transactions of a window
    are passed on as they are."""
    loaded = [packing.loaded(part) for part in parts]
    if refused := [each for each in loaded if isinstance(each, Refused)]:
        return refused[0], iter(())
    if number >= layout.buckets:
        return None, iter([(number, packing.dumped(each)) for each in loaded])
    try:
        return _judged(layout, garbage, loaded)
    except (NotUnderstood, BadHistory) as error:
        is_bad = isinstance(error, BadHistory)
        why = f"{layout.path}: {error}" if is_bad else str(error)
        return Refused(why, is_bad), iter(())


def _judged(layout: Layout, garbage: bool, parts: Sequence[ListRows]) -> tuple[Judged, Parts]:
    rows = list_rows.joined(parts, sum(len(each.txn) for each in parts))
    numbers, position = rows.txns.event, rows.txns.completed
    plain = rows._replace(txns=rows.txns._replace(event=np.arange(len(numbers))))
    named = columnar.names(Path(layout.path))
    found = buckets.judge(list_rows.history(plain, named), garbage=garbage)
    source, target = (np.concatenate(ends) for ends in (found.source, found.target))
    judged = Judged(
        gathered.renumbered(found.found, numbers),
        numbers[found.proven],
        numbers[found.doubtful],
        found.is_complete,
    )
    return judged, _windows(layout, position[source], position[target], position[found.proven])


def _windows(layout: Layout, source: I64, target: I64, proven: I64) -> Parts:
    first, last = layout.window(target), layout.window(source)
    back = np.flatnonzero(last > first)
    of_proven = layout.window(proven)
    at_target = dict(_grouped(first))
    for window in np.unique(np.concatenate((first, last[back], of_proven))).tolist():
        rows = at_target.get(window, _NONE)
        yield (
            layout.buckets + window,
            packing.dumped(
                Dependencies(
                    source[rows],
                    target[rows],
                    source[back[(first[back] < window) & (window <= last[back])]],
                    proven[of_proven == window],
                )
            ),
        )


def rows_of(wanted: I64, groups: Groups) -> bytes:
    """Return the rows of these transactions, given by their numbers."""
    rows, numbers = columnar.part(Path(groups.path), groups.first, groups.end)
    here = np.flatnonzero(np.isin(numbers, wanted))
    return packing.dumped(rows.of_transactions(here))


def longest_of(keys: I64, groups: Groups) -> bytes:
    """Return the longest lists of these keys, ascending, that some row groups have."""
    rows, _ = columnar.part(Path(groups.path), groups.first, groups.end)
    return packing.dumped(rows.longest(keys))


def joined_longest(parts: Sequence[bytes]) -> Longest:
    """Return the longest list of each key."""
    found: list[Longest] = [packing.loaded(part) for part in parts]
    key = np.concatenate([_NONE, *(each.key for each in found)])
    lists = list_rows.joined_lists([NO_ROWS.lists, *(each.lists for each in found)])
    return list_rows.longest_of(Longest(key, lists))
