"""The result about a large history, from what its buckets show and the transactions on cycles.

Only the transactions on cycles, and those that findings name, are put together again. The order of
versions of their keys is known from the longest lists. A dependency between two of these
transactions may then lead over others that are not here. It is no edge of the whole history, but
it changes no result: if both its ends were on one cycle, the others would be on it too.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from checkers.isolation import buckets, conclusion, cycles, list_append, list_rows
from checkers.isolation.describing import Describer
from checkers.isolation.findings import SHOWN_MAX, Findings, Found, ReadTable, Result
from checkers.isolation.list_rows import ListRows, Longest, Named
from checkers.isolation.options import Options
from checkers.isolation.transactions import ListHistory
from checkers.kernels.arrays import I64, distinct, is_in

_NONE = np.zeros(0, np.int64)


class Shown(NamedTuple):
    """What all buckets show; transactions are named by their numbers in the whole history."""

    found: Findings
    proven: I64
    """Transactions in doubt that happened, ascending."""
    unknown: tuple[str, ...]
    """Why dependencies are missing."""


class Outline(NamedTuple):
    """What is known of a whole history besides."""

    transactions: int
    orders: frozenset[str]
    """The orders between transactions that count."""
    is_empty: bool
    """Whether there is no dependency and no order."""


Fetch = Callable[[I64], tuple[ListRows, Longest]]
"""Returns the rows of transactions, given their numbers, with the longest lists of their keys."""


def shown(found: Iterable[tuple[Findings, I64, I64, bool]]) -> Shown:
    """Join what buckets show: findings, transactions that are proven, those of which dependencies
    are left out, and whether no other dependency is."""
    parts = [*found]
    proven = distinct(np.concatenate([_NONE, *(part[1] for part in parts)]))
    doubtful = np.concatenate([_NONE, *(part[2] for part in parts)])
    is_complete = all(part[3] for part in parts) and not is_in(doubtful, proven).any()
    return Shown(
        _merged([part[0] for part in parts]),
        proven,
        () if is_complete else (buckets.TOO_MANY,),
    )


def _merged(parts: Sequence[Findings]) -> Findings:
    """Join findings, and keep the first ones of each anomaly."""
    found = Findings()
    for part in parts:
        for anomaly, count in part.counts.items():
            found.counts[anomaly] = found.counts.get(anomaly, 0) + count
            found.shown.setdefault(anomaly, []).extend(part.shown[anomaly])
    for anomaly, each in found.shown.items():
        found.shown[anomaly] = sorted(each, key=lambda one: (one.events, str(one.key)))[:SHOWN_MAX]
    return found


def renumbered(found: Findings, numbers: I64) -> Findings:
    """Return findings whose transactions have other numbers."""

    def tables(reads: ReadTable | None) -> ReadTable | None:
        if reads is None:
            return None
        rows = (dataclasses.replace(row, event=int(numbers[row.event])) for row in reads.rows)
        return dataclasses.replace(reads, rows=tuple(rows))

    def one(each: Found) -> Found:
        events = tuple(int(numbers[event]) for event in each.events)
        return dataclasses.replace(each, events=events, reads=tables(each.reads))

    shown = {name: [one(each) for each in some] for name, some in found.shown.items()}
    return Findings(shown, found.counts)


def concluded(
    shown: Shown, members: I64, outline: Outline, fetch: Fetch, named: Named, options: Options
) -> Result:
    """Return the result.

    Args:
        members: the transactions on cycles of dependencies and orders.
    """
    wanted = distinct(np.concatenate((members, _events(shown.found))))
    rows, longest = fetch(wanted)
    history = list_rows.history(rows, named, longest)
    known = list_append.orders(history)
    known.happened[is_in(wanted, shown.proven)] = True
    dependencies, is_complete = list_append.dependencies(history, known)
    edges = [*dependencies, *conclusion.orders(history.txns, known.happened, outline.orders)]
    return conclusion.result(
        _described(shown.found, history, wanted),
        cycles.search(history, edges, options.prohibited, options.budget),
        options,
        transactions=outline.transactions,
        is_empty=outline.is_empty,
        unknown=shown.unknown or (() if is_complete else (buckets.TOO_MANY,)),
    )


def _events(found: Findings) -> I64:
    """Return the transactions that findings and their tables name."""
    named: set[int] = set()
    for each in (one for some in found.shown.values() for one in some):
        named.update(each.events)
        named.update(row.event for row in (each.reads.rows if each.reads else ()))
    return np.array(sorted(named), np.int64)


def _described(found: Findings, history: ListHistory, numbers: I64) -> Findings:
    """Return findings with all that their transactions did, and with the events that ended them."""
    describer = Describer(history)

    def one(each: Found) -> Found:
        rows = np.searchsorted(numbers, each.events).tolist()
        return dataclasses.replace(
            each,
            descriptions=tuple(map(history.describe, rows)),
            micro_ops=tuple(map(describer.micro_ops, rows)),
        )

    events = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.int64)
    events[numbers] = history.txns.event
    shown = {name: [one(each) for each in some] for name, some in found.shown.items()}
    return renumbered(Findings(shown, found.counts), events)
