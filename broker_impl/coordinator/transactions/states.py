"""The states of a transactional id, and their permitted predecessors; other transitions are bugs.

    Empty ─► Ongoing ─┬► PrepareCommit ─► CompleteCommit ─┬► Ongoing, Empty, Dead
                      └► PrepareAbort ──► CompleteAbort ──┘

A transaction in a Prepare state is decided: its markers are sent until all partitions have theirs,
whatever happens. When a producer is fenced in the middle of a transaction, its id passes through
PrepareEpochFence, in memory only.
"""

from enum import IntEnum
from typing import Final


class State(IntEnum):
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
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

_AT_REST: Final = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

PREDECESSORS: Final = {
    State.EMPTY: _AT_REST,
    State.ONGOING: _AT_REST | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: frozenset({State.ONGOING, State.PREPARE_EPOCH_FENCE}),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _AT_REST,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}


def may_follow(state: State, former: State) -> bool:
    """May an id change from state ``former`` to ``state``?"""
    return former in PREDECESSORS[state]


def is_decided(state: State) -> bool:
    """Is the outcome decided, so that markers must be written?"""
    return state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)


def is_at_rest(state: State) -> bool:
    """Is there neither an open nor a decided transaction?"""
    return state in _AT_REST
