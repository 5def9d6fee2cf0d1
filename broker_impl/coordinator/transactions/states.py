"""The states of a transactional id, and their permitted predecessors; other transitions are bugs.

    Empty ─► Ongoing ─┬► PrepareCommit ─► CompleteCommit ─┬► Ongoing, Empty, Dead
                      └► PrepareAbort ──► CompleteAbort ──┘

A transaction in a Prepare state is decided: its markers are sent until all partitions have theirs,
whatever happens. When a producer is fenced in the middle of a transaction, its id passes through
PrepareEpochFence, in memory only.
"""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The state of a transactional id, with the numbers of ``__transaction_state``."""

    EMPTY = 0
    """A producer has the id and has not begun a transaction yet."""
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """The id is expiring."""
    PREPARE_EPOCH_FENCE = 7
    """The producer's epoch is fenced; the abort is about to be written."""

    @property
    def title(self) -> str:
        """Kafka's name for the state, as in DescribeTransactions."""
        return _TITLES[self]


_TITLES: Final = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

_AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)

PREDECESSORS: Final = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: _AT_REST | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: frozenset(
        {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE}
    ),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}


def may_follow(state: TransactionState, former: TransactionState) -> bool:
    """May an id change from state ``former`` to ``state``?"""
    return former in PREDECESSORS[state]


def is_decided(state: TransactionState) -> bool:
    """Is the outcome decided, so that markers must be written?"""
    return state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def is_at_rest(state: TransactionState) -> bool:
    """Is there neither an open nor a decided transaction?"""
    return state in _AT_REST
