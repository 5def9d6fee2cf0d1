"""What the rows of some keys show: anomalies that need no cycle, and the ends of dependencies.

A bucket does not know whether a transaction in doubt happened, because a read of another key may
prove it. So it returns the dependencies of all that did not fail, and those of which it has proof.
Its findings name transactions by their numbers, and describe only what they did to these keys.
"""

from typing import NamedTuple

import numpy as np

from checkers.isolation import list_anomalies, list_append
from checkers.isolation.findings import Findings
from checkers.isolation.list_append import Orders
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.transactions import ListHistory
from checkers.kernels.arrays import I64
from checkers.kernels.rows import FAIL, INFO, OK

TOO_MANY = "too many transactions read last versions to compare them with all later appends"


class Bucket(NamedTuple):
    """What was found; transactions are named by their rows in the history of the bucket."""

    found: Findings
    source: list[I64]
    """The earlier transactions of dependencies, in several parts."""
    target: list[I64]
    """The later ones."""
    proven: I64
    """Transactions in doubt that happened."""
    doubtful: I64
    """Transactions in doubt whose dependencies are left out, because they are too many."""
    is_complete: bool
    """Whether no other dependency is left out."""


def judge(history: ListHistory, *, garbage: bool) -> Bucket:
    """Judge the rows of some keys.

    ``garbage`` asks for reads of what nothing appended. Raises
    :class:`~checkers.isolation.reading.NotUnderstood` for an element that is appended twice.
    """
    known = examined(history)
    found = findings(history, known, garbage=garbage)
    outcome = history.txns.outcome
    parts, is_complete = list_append.dependencies(history, known._replace(happened=outcome != FAIL))
    doubtful = np.zeros(0, np.int64)
    if not is_complete:
        parts, is_complete = list_append.dependencies(history, known)
        doubtful = np.flatnonzero(~known.happened & (outcome == INFO))
    return Bucket(
        found,
        [part.source.astype(np.int64) for part in parts],
        [part.target.astype(np.int64) for part in parts],
        np.flatnonzero(known.happened & (outcome != OK)),
        doubtful,
        is_complete,
    )


def examined(history: ListHistory) -> Orders:
    """Return the writers of all elements that were read. Raises
    :class:`~checkers.isolation.reading.NotUnderstood` for an element that is appended twice."""
    twice = list_append.appended_twice(history)
    if len(twice):
        key = history.names.key(int(history.ops.key[twice[0]]))
        element = history.names.element(int(history.ops.element[twice[0]]))
        raise NotUnderstood(f"{element} is appended to {key} more than once")
    return list_append.orders(history)


def findings(history: ListHistory, known: Orders, *, garbage: bool) -> Findings:
    """Return the anomalies that need no cycle."""
    found = list_anomalies.anomalies(history, known)
    if garbage:
        found.merge(list_anomalies.garbage_reads(history, known))
    return found
