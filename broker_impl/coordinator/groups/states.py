"""The five states of a group, and their permitted predecessors; any other transition is a bug.

Empty ─► PreparingRebalance ─► CompletingRebalance ─► Stable, and from each of the last three back
to PreparingRebalance; from there to Empty when no member is left. Dead may follow any state, and no
state follows Dead.
"""

from enum import Enum
from typing import Final


class GroupStatus(Enum):
    """The state of a group, with Kafka's names, as DescribeGroups reports them."""

    EMPTY = "Empty"
    """No members; there may be committed offsets."""
    PREPARING = "PreparingRebalance"
    """The coordinator waits for all members to join again."""
    COMPLETING = "CompletingRebalance"
    """All members have joined; the leader's assignment is awaited, or is being written."""
    STABLE = "Stable"
    """Each member has its assignment, or may fetch it."""
    DEAD = "Dead"
    """The group is deleted, or no longer coordinated here."""


PREDECESSORS: Final = {
    GroupStatus.EMPTY: frozenset({GroupStatus.PREPARING}),
    GroupStatus.PREPARING: frozenset(
        {GroupStatus.STABLE, GroupStatus.COMPLETING, GroupStatus.EMPTY}
    ),
    GroupStatus.COMPLETING: frozenset({GroupStatus.PREPARING}),
    GroupStatus.STABLE: frozenset({GroupStatus.COMPLETING}),
    GroupStatus.DEAD: frozenset(
        {GroupStatus.EMPTY, GroupStatus.PREPARING, GroupStatus.COMPLETING, GroupStatus.STABLE}
    ),
}


def may_follow(state: GroupStatus, former: GroupStatus) -> bool:
    """May a group change from state ``former`` to ``state``?"""
    return former in PREDECESSORS[state]
