"""Uses of transactional producers: what each chunk knows of them, and what all chunks know.

A producer is stuck if nothing has succeeded with its transactional id since some use. So of the
uses in a chunk, only some are kept for each process: its first one, its last success, and those
after that.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers import counts, producers
from checkers.columns import Columns
from checkers.kernels.arrays import changes
from checkers.kernels.compact import AllSends, Operations
from checkers.kernels.history import NO_ATTEMPTS, Attempts, Init
from checkers.kernels.rows import I64, INFO


class Uses(NamedTuple):
    """The uses of transactional producers in a chunk, or in a history."""

    inits: tuple[Init, ...] = ()
    """The takeovers that were acknowledged."""
    names: tuple[tuple[int, str], ...] = ()
    """Each process that asked for a transactional id, with that id, in order."""
    attempts: Attempts = NO_ATTEMPTS
    """Those after the last fault was healed that a verdict may need."""
    after_healing: int = 0
    """How many there are after the last fault was healed; 0 without faults, or if one was not
    healed."""
    transactions: int = 0
    """Transactions that sent records."""
    in_doubt: int = 0
    """Transactions that sent records of which it is unknown whether they happened."""


def of_chunk(columns: Columns, operations: Operations, healed_ns: int | None) -> Uses:
    """Return the uses in a chunk, in which operations are whole."""
    if not operations.txn.any() and "init" not in columns.f_names:
        return Uses()
    first, last, outcome = operations.first, operations.last, operations.outcome
    sends, _ = producers.sends(columns, operations)
    attempts = producers.attempts(columns, first, last, outcome)
    kept = attempts
    if healed_ns is not None:
        kept = attempts.where(attempts.start_ns >= healed_ns)
    return Uses(
        producers.inits(columns, first, last, outcome),
        tuple(producers.ids(columns, last)),
        NO_ATTEMPTS if healed_ns is None else kept.where(_wanted(kept)),
        len(kept.op) if healed_ns else 0,
        *transactions(sends),
    )


def transactions(sends: AllSends) -> tuple[int, int]:
    """Return how many transactions sent records, and how many of them are in doubt."""
    return counts.transactions(sends, sends.txn), counts.transactions(
        sends, sends.txn & (sends.outcome == INFO)
    )


def _wanted(attempts: Attempts) -> I64:
    """Return the rows of each process's first use, of its last success, and of those after it."""
    order = np.argsort(attempts.process, kind="stable")
    begins = changes(attempts.process[order])
    number = np.cumsum(begins) - 1
    last = np.full(int(begins.sum()), -1)
    place, succeeded = np.arange(len(order)), attempts.succeeded[order]
    np.maximum.at(last, number[succeeded], place[succeeded])
    return np.sort(order[begins | (place >= last[number])])


def joined(parts: Sequence[Uses]) -> Uses:
    """Return the uses of all chunks together."""
    names = [each for part in parts for each in part.names]
    number = {name: code for code, name in enumerate(dict.fromkeys(name for _, name in names))}
    id_of = {process: number[name] for process, name in names}
    columns: Any = zip(NO_ATTEMPTS, *(part.attempts for part in parts), strict=True)
    attempts = Attempts(*map(np.concatenate, columns))
    ids = producers.mapped(attempts.process, id_of)
    return Uses(
        tuple(init for part in parts for init in part.inits),
        tuple(names),
        attempts._replace(transactional_id=ids),
        sum(part.after_healing for part in parts),
        sum(part.transactions for part in parts),
        sum(part.in_doubt for part in parts),
    )
