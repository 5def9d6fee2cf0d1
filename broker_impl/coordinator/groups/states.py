"""The five states of a group, and which of them each may come from; any other step is a bug.

Empty ─► PreparingRebalance ─► CompletingRebalance ─► Stable, and from each of the last three back
to PreparingRebalance; from there to Empty when nobody is left. Dead may follow any, and none Dead.
"""

from enum import Enum
from typing import Final


class State(Enum):
    """Where a group stands; the names are Kafka's, as DescribeGroups tells them."""

    EMPTY = "Empty"
    """No members; offsets may be there."""
    PREPARING = "PreparingRebalance"
    """Members are asked to join again."""
    COMPLETING = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited, or being written."""
    STABLE = "Stable"
    """Each member has its assignment, or may fetch it."""
    DEAD = "Dead"
    """Deleted, or no longer coordinated here."""


PREDECESSORS: Final = {
    State.EMPTY: frozenset({State.PREPARING}),
    State.PREPARING: frozenset({State.STABLE, State.COMPLETING, State.EMPTY}),
    State.COMPLETING: frozenset({State.PREPARING}),
    State.STABLE: frozenset({State.COMPLETING}),
    State.DEAD: frozenset({State.EMPTY, State.PREPARING, State.COMPLETING, State.STABLE}),
}


def may_follow(state: State, former: State) -> bool:
    """May a group in ``former`` go over to ``state``?"""
    return former in PREDECESSORS[state]
