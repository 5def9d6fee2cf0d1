"""The plan of a distributed judgement of transactions on lists, which are in a Parquet file.

1. Every chunk is cut into buckets of keys and windows of transactions. Every bucket is judged, and
   its dependencies are cut into windows, which are searched for transactions on cycles.
2. These transactions, and those that findings name, are looked up in the chunks.
3. So are the longest lists of their keys. Then anomalies are searched as in
   :mod:`checkers.isolation.gathered`.

The process that follows the plan holds counts, findings, and these transactions.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from checkers.distributed import list_tasks, list_windows, packing
from checkers.distributed.list_tasks import Groups, Judged, Layout, Refused
from checkers.distributed.list_windows import Searched
from checkers.distributed.runner import Runner
from checkers.isolation import columnar, conclusion, gathered, list_rows
from checkers.isolation.findings import Result
from checkers.isolation.gathered import Outline
from checkers.isolation.list_rows import ListRows, Longest
from checkers.isolation.options import Options
from checkers.kernels.arrays import I64
from model.history import BadHistory

STAGES, STAGES_OF_LOOKUPS = 3, 2
"""How many stages a plan has, and how many more where there are anomalies."""
CHUNK_ROWS, BUCKET_ROWS = 1 << 21, 1 << 20
"""Number of rows of a chunk and of a bucket, about."""


def judge(path: Path, runner: Runner, options: Options) -> Result:
    """Judge the isolation of the transactions in a file, which all tasks can read.

    Raises :class:`~model.history.BadHistory` for a file that is not a history.
    """
    named, sizes = columnar.names(path), columnar.group_rows(path)
    items = [Groups(str(path), first, end) for first, end in _chunks(sizes)]
    runner.expect(STAGES)
    begins = [
        begin for begin in columnar.begins(path, [at.first for at in items[1:]]) if begin >= 0
    ]
    layout = Layout(str(path), 1 + sum(sizes) // BUCKET_ROWS, np.unique(np.array(begins, np.int64)))
    orders = conclusion.order_names(options, all_invoked=columnar.all_invoked(path))
    said, found = runner.regrouped(
        partial(list_tasks.cut, layout),
        items,
        partial(list_tasks.split, layout, "garbage-read" in options.anomalies),
        partial(list_windows.search, orders),
    )
    if refused := _refused([*said, *found]):
        return refused
    judged: Sequence[Judged] = [each for each in said if each is not None]
    shown = gathered.shown((e.found, e.proven, e.doubtful, e.is_complete) for e in judged)
    members, why = list_windows.joined(found, orders)
    if why:
        shown = shown._replace(unknown=(*shown.unknown, why))
    lookup = _Lookup(runner, items, sizes)
    outline = Outline(_transactions(found), orders, list_windows.is_empty(found, orders))
    return gathered.concluded(shown, members, outline, lookup.fetch, named, options)


def _chunks(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of row groups with about as many rows each."""
    first, rows = 0, 0
    for group, size in enumerate(sizes):
        rows += size
        if rows >= CHUNK_ROWS or group == len(sizes) - 1:
            yield first, group + 1
            first, rows = group + 1, 0


def _refused(said: Sequence[Any]) -> Result | None:
    """Return the result about a history that cannot be understood; raise any other error."""
    for each in said:
        if isinstance(each, Exception):
            raise each
    refused = [each for each in said if isinstance(each, Refused)]
    for each in refused:
        if each.is_bad:
            raise BadHistory(each.why)
    return conclusion.nothing(refused[0].why) if refused else None


def _transactions(found: Sequence[Searched]) -> int:
    return sum(each.transactions for each in found)


class _Lookup:
    """Reads transactions from the chunks."""

    def __init__(self, runner: Runner, items: Sequence[Groups], sizes: Sequence[int]) -> None:
        self._runner, self._items = runner, items
        begins = np.concatenate(([0], np.cumsum(sizes)))
        self._first = begins[[each.first for each in items]]
        """The first row of each chunk."""

    def fetch(self, wanted: I64) -> tuple[ListRows, Longest]:
        """Return the rows of transactions, with the longest lists of their keys."""
        if not len(wanted):
            return list_rows.NO_ROWS, list_tasks.joined_longest([])
        self._runner.expect(STAGES + STAGES_OF_LOOKUPS)
        places = np.unique(np.searchsorted(self._first, wanted, "right") - 1)
        near = [self._items[place] for place in places.tolist()]
        read = self._runner.each(partial(list_tasks.rows_of, wanted), near)
        parts: list[ListRows] = [packing.loaded(each) for each in read]
        rows = list_rows.joined(parts, sum(len(part.txn) for part in parts))
        keys = np.unique(rows.key)
        lists = self._runner.each(partial(list_tasks.longest_of, keys), self._items)
        return rows, list_tasks.joined_longest(lists)
