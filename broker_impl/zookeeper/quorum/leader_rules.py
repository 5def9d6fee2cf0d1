"""What a leader may do: which epoch it begins, which learners it takes, how long it leads."""

from collections.abc import Collection

from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum.ensemble import Ensemble, ServerId


def accept(history: History, epoch: int) -> None:
    """Accept the epoch that this server will lead, before any other server is asked to.

    Without that, it could promise the same epoch to another server after a restart (ZOOKEEPER-335).
    """
    history.ledger.accept_epoch(epoch)


def has_longer_history(theirs: tuple[int, int], ours: tuple[int, int]) -> bool:
    """Return whether a voter's history, as its epoch and last zxid, is longer than the leader's.

    The leader would have that voter truncate what may be committed, so it does not take it.
    """
    return theirs > ours


def may_lead(ensemble: Ensemble, synced: Collection[ServerId]) -> bool:
    """Return whether a leader goes on: a quorum, itself included, was heard not long ago."""
    return ensemble.has_quorum(synced)
