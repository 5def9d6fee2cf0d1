"""What a learner may promise and acknowledge, and what must be durable before that."""

from collections.abc import Sequence

from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum.packets import Type
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal

NO_PROMISE = -1
"""Stands for no promise: the answer must not count for the epoch of the leader."""


def may_follow(epoch: int, accepted: int) -> bool:
    """Return whether a server that has accepted an epoch may follow the leader of another one."""
    return epoch >= accepted


def promise(epoch: int, accepted: int, current: int) -> int:
    """Return the epoch of this server's history for ACKEPOCH.

    A server that has promised the same epoch before must not count a second time: the promise may
    have been to another server.
    """
    return current if epoch > accepted else NO_PROMISE


def begin(history: History, kind: Type, zxid: int) -> None:
    """Bring the history to where the leader's transactions follow, as its first packet says.

    Args:
        history: this server's history.
        kind: DIFF, TRUNC or SNAP.
        zxid: of TRUNC the last zxid to keep; DIFF names the end of what follows (ZOOKEEPER-2355).
    """
    if kind is Type.TRUNC:
        history.truncate(zxid)


def hold(history: History, state: Database) -> Database:
    """Return a state of the leader, to be used once it is durable.

    Until then the server keeps its own (ZOOKEEPER-3642): the leader may be gone before NEWLEADER.
    """
    del history
    return state


def uncommitted(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return the transactions to log after NEWLEADER: those without a commit so far.

    Their commits may follow between NEWLEADER and UPTODATE (ZOOKEEPER-4394).
    """
    return list(proposals)


def take_over(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """Make the leader's history durable, and only then its epoch (ZOOKEEPER-3911, 4643, 4646).

    Args:
        history: this server's history, which the leader has truncated where that was necessary.
        state: the leader's state if it has sent that, which may contain some of the transactions.
        committed: the committed transactions that follow.
        epoch: the leader's epoch.
    """
    if state is not None:
        for proposal in committed:
            if proposal.header.zxid > state.last_zxid:
                state.replay(proposal)
        history.install(state)
    elif committed:
        history.log(committed)
        history.commit_to(committed[-1].header.zxid)
    history.ledger.enter_epoch(epoch)


def log(history: History, proposals: Sequence[Proposal]) -> list[int]:
    """Write transactions to the log, and return the zxids that may be acknowledged then."""
    history.log(proposals)
    return [proposal.header.zxid for proposal in proposals]
