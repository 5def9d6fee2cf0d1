"""Zxids: the epoch of the leader in the upper 32 bits, a counter of its transactions below."""

COUNTER_MAX = 0xFFFFFFFF


def first_of(epoch: int) -> int:
    """Return the zxid of an epoch that no transaction has: the end of the history before it."""
    return epoch << 32


def epoch_of(zxid: int) -> int:
    """Return the epoch of a zxid."""
    return zxid >> 32


def counter_of(zxid: int) -> int:
    """Return the number of a transaction in its epoch."""
    return zxid & COUNTER_MAX


def follows(zxid: int, last: int) -> bool:
    """Return whether a transaction may come right after ``last``: no other can lie between."""
    return zxid == last + 1 or (epoch_of(zxid) > epoch_of(last) and counter_of(zxid) == 1)


def is_exhausted(zxid: int) -> bool:
    """Return whether an epoch has no zxid after this one (ZOOKEEPER-1277)."""
    return counter_of(zxid) == COUNTER_MAX
