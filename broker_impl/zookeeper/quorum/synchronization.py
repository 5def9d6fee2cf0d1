"""How a leader brings a learner to its own history: by differences, a truncation, or its state.

This is the choice of ZooKeeper's ``LearnerHandler.syncFollower``. The leader's history is known
back to some zxid (its window); what precedes it is read from its log, or replaced by its state.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from broker_impl.zookeeper.quorum.packets import Type
from broker_impl.zookeeper.zxids import counter_of, epoch_of


class Plan(NamedTuple):
    """What a learner is sent first, and from where the leader's transactions follow."""

    type: Type
    """DIFF, TRUNC or SNAP."""
    zxid: int
    """The zxid in that packet: of the last transaction that the learner keeps, for TRUNC."""
    after: int
    """The committed transactions after this zxid follow."""


def plan(learner: int, window: Sequence[int], last: int) -> Plan | None:
    """Return how to synchronize a learner; None if the window does not reach back far enough.

    Args:
        learner: the last zxid in the learner's log.
        window: the zxids of the leader's latest committed transactions, in order.
        last: the zxid of the leader's last committed transaction, or of the snapshot before it.
    """
    newest = window[-1] if window else last
    oldest = window[0] if window else last
    if learner == last:
        return Plan(Type.DIFF, last, last)
    if learner > newest and counter_of(learner):
        return Plan(Type.TRUNC, newest, newest)
    if learner < oldest:
        return None
    at = bisect_left(window, learner)
    if at < len(window) and window[at] == learner:
        return Plan(Type.DIFF, newest, learner)
    if not counter_of(learner):
        # The zxid with which an epoch begins is of no transaction, so no log has it.
        return Plan(Type.DIFF, newest, learner)
    return _beside(learner, window)


def _beside(learner: int, window: Sequence[int]) -> Plan:
    """The learner has a transaction of a former leader that the leader does not have."""
    following = bisect_right(window, learner)
    before, after = window[following - 1], window[following]
    if epoch_of(after) != epoch_of(learner):
        # ZooKeeper cannot truncate a log to an earlier epoch.
        return Plan(Type.SNAP, window[-1], window[-1])
    return Plan(Type.TRUNC, before, before)
