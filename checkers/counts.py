"""Numbers about a history that add up: those of a whole history are the sums of its parts."""

import operator
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from checkers.kernels.arrays import changes
from checkers.kernels.compact import AllSends, Operations
from checkers.kernels.history import Attempts
from checkers.kernels.rows import FAIL, INFO, OK, UNKNOWN, Bools
from checkers.kernels.steps import ASSIGNED, COMMIT, FETCH, HIGH, LOST, REVOKED, STABLE, START
from checkers.tables import Tables


class Outcomes(NamedTuple):
    """How many operations of clients were completed, and how many of them in which way."""

    ops: int = 0
    ok: int = 0
    fail: int = 0
    info: int = 0


class Counts(NamedTuple):
    """How much a history has of what checkers judge.

    They add up for parts of a history that have no transaction in common.
    """

    accountable: int = 0
    """Records that must be in the log: acknowledged, or proven to have happened."""
    placed: int = 0
    """Those among them whose offset the broker returned."""
    read: int = 0
    """Deliveries of records."""
    read_in_transactions: int = 0
    read_of_compacted: int = 0
    sent_after_healing: int = 0
    """Records sent after the last fault was healed; 0 without faults, or if one was not healed."""
    attempts_after_healing: int = 0
    """Uses of transactional producers, likewise."""
    transactions: int = 0
    """Transactions that sent records."""
    transactions_in_doubt: int = 0
    commits: int = 0
    """Offsets that groups committed, or may have committed."""
    commits_acknowledged: int = 0
    commits_in_transactions: int = 0
    fetches: int = 0
    """Committed offsets that were fetched."""
    assignments: int = 0
    """Partitions that a member of a group reported as assigned."""
    revocations: int = 0
    """Partitions that a member of a group reported as revoked or lost."""
    log_ends: int = 0
    """Log ends that were requested."""


def outcomes(operations: Operations) -> Outcomes:
    """Count the operations that were completed."""
    done = operations.outcome[operations.completed]
    return Outcomes(len(done), *(int((done == outcome).sum()) for outcome in (OK, FAIL, INFO)))


def subscribes(operations: Operations) -> bool:
    """Return whether any client asked for a subscription."""
    asked = [code for code, name in enumerate(operations.f) if name == "subscribe"]
    return bool(np.isin(operations.f_code, asked).any())


def of(tables: Tables) -> Counts:
    """Count what a history has."""
    sends, steps = tables.sends, tables.steps
    compacted = np.array(sorted(tables.compacted), dtype=np.int64)
    commits = steps.kind == COMMIT
    accountable = sends.accountable
    return Counts(
        accountable=int(accountable.sum()),
        placed=int((accountable & (sends.offset != UNKNOWN)).sum()),
        read=len(tables.polls),
        read_in_transactions=int(tables.polls.txn.sum()),
        read_of_compacted=int(np.isin(tables.polls.key, compacted).sum()),
        sent_after_healing=_after_healing(tables, sends),
        attempts_after_healing=_after_healing(tables, tables.attempts),
        transactions=transactions(sends, sends.txn),
        transactions_in_doubt=transactions(sends, sends.txn & (sends.outcome == INFO)),
        commits=int(commits.sum()),
        commits_acknowledged=int((commits & (steps.outcome == OK)).sum()),
        commits_in_transactions=int((commits & steps.txn).sum()),
        fetches=_steps(tables, FETCH),
        assignments=_steps(tables, ASSIGNED),
        revocations=_steps(tables, REVOKED, LOST),
        log_ends=_steps(tables, START, HIGH, STABLE),
    )


def total(parts: Iterable[Counts]) -> Counts:
    """Return the sums of the counts of all parts of a history."""
    return reduce(lambda one, other: Counts(*map(operator.add, one, other)), parts, Counts())


def _steps(tables: Tables, *kinds: int) -> int:
    return int(np.isin(tables.steps.kind, kinds).sum())


def _after_healing(tables: Tables, began: AllSends | Attempts) -> int:
    healed_ns = tables.healed_ns
    return int((began.start_ns >= healed_ns).sum()) if healed_ns and tables.faults else 0


def transactions(sends: AllSends, rows: Bools) -> int:
    """Count the operations of these rows."""
    return int(changes(sends.operation[rows]).sum())
