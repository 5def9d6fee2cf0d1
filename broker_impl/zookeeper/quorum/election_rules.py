"""The order of votes: which server has the longest history, and may therefore lead."""

from broker_impl.zookeeper.quorum.notifications import Vote


def supersedes(new: Vote, current: Vote) -> bool:
    """Return whether a vote is better: a higher epoch, then a higher zxid, then a higher id."""
    return (new.epoch, new.zxid, new.leader) > (current.epoch, current.zxid, current.leader)


def better_of(heard: Vote, own: Vote) -> Vote:
    """Return the better of a vote that was heard and the vote for this server itself."""
    return heard if supersedes(heard, own) else own


def synchronized(vote: Vote, epoch: int) -> Vote:
    """Return the vote of a server that belongs to an established ensemble, in this epoch.

    A server that starts later compares these votes, so they have the same epoch (ZOOKEEPER-1732).
    """
    return vote._replace(epoch=epoch)


def agree(one: Vote, other: Vote) -> bool:
    """Return whether two servers that have a leader have the same one, in the same epoch.

    Their zxids may differ: each states the zxid that it knew when it decided.
    """
    return one.leader == other.leader and one.epoch == other.epoch
