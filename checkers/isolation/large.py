"""Judges many transactions on lists in this process, in buckets of keys.

A bucket needs some columns of its own only while it is judged. Of each dependency, the places of
its two transactions stay in memory.
"""

from typing import NamedTuple

import numpy as np

from checkers.isolation import buckets, conclusion, gathered, list_rows, regions
from checkers.isolation.findings import Findings, Result
from checkers.isolation.gathered import Outline
from checkers.isolation.list_rows import ListRows, Longest, Named
from checkers.isolation.options import Options
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.regions import Ends
from checkers.kernels.arrays import I64
from checkers.kernels.rows import OK, Bools
from checkers.threads import THREADS, mapped

ROWS = 1 << 17
"""Number of rows of a bucket, about."""


class _Bucket(NamedTuple):
    found: Findings
    proven: I64
    doubtful: I64
    is_complete: bool
    certain: Ends
    """Dependencies between transactions that succeeded."""
    others: Ends
    """Those of transactions in doubt."""


def judge(rows: ListRows, named: Named, options: Options) -> Result:
    """Judge the isolation of all transactions.

    Raises :class:`~model.history.BadHistory` if a list is missing that is needed.
    """
    try:
        return _judged(rows, named, options)
    except NotUnderstood as error:
        return conclusion.nothing(str(error))


def _judged(rows: ListRows, named: Named, options: Options) -> Result:
    txns, garbage = rows.txns, "garbage-read" in options.anomalies
    count = 1 + len(rows.txn) // ROWS
    divided, places = rows.buckets(count), regions.places(txns)

    def judged(number: int) -> _Bucket:
        some, numbers = rows.of_rows(divided.rows(number))
        plain = some._replace(txns=some.txns._replace(event=np.arange(len(numbers))))
        found = buckets.judge(list_rows.history(plain, named), garbage=garbage)
        place, is_ok = places.place[numbers], some.txns.outcome == OK
        source, target = (np.concatenate(ends) for ends in (found.source, found.target))
        is_certain = is_ok[source] & is_ok[target]
        begin, end = place[source], place[target]
        return _Bucket(
            gathered.renumbered(found.found, numbers),
            numbers[found.proven],
            numbers[found.doubtful],
            found.is_complete,
            (begin[is_certain], end[is_certain]),
            (begin[~is_certain], end[~is_certain]),
        )

    found = [*mapped(judged, range(count), THREADS)]
    shown = gathered.shown(each[:4] for each in found)
    happened: Bools = txns.outcome == OK
    happened[shown.proven] = True
    names = conclusion.order_names(options, all_invoked=conclusion.all_invoked(txns, happened))
    by_place = happened[places.order]
    ends = [
        *(each.certain for each in found),
        *(_among(each.others, by_place) for each in found),
    ]
    del found
    is_empty = not any(len(source) for source, _ in ends) and not any(
        len(part.source) for part in conclusion.orders(txns, happened, names)
    )
    found_at = regions.on_cycles(txns, places.order, by_place, ends, names, THREADS)
    members = np.sort(places.order[found_at])

    def fetch(wanted: I64) -> tuple[ListRows, Longest]:
        some = rows.of_transactions(wanted)
        return some, rows.longest(np.unique(some.key))

    outline = Outline(len(rows.txns.event), names, is_empty)
    return gathered.concluded(shown, members, outline, fetch, named, options)


def _among(ends: Ends, happened: Bools) -> Ends:
    """Return the dependencies between transactions that happened."""
    source, target = ends
    kept = happened[source] & happened[target]
    return source[kept], target[kept]
