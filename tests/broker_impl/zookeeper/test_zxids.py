"""Zxids are an epoch and a counter, and what may follow what is decided here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper import zxids


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_epoch_and_counter(epoch: int, counter: int) -> None:
    """A zxid is its epoch's first one plus a counter."""
    zxid = zxids.first_of(epoch) + counter
    assert (zxids.epoch_of(zxid), zxids.counter_of(zxid)) == (epoch, counter)


@pytest.mark.parametrize(
    ("zxid", "last", "follows"),
    [
        (0x100000002, 0x100000001, True),
        (0x100000003, 0x100000001, False),  # a gap
        (0x100000001, 0x100000001, False),
        (0x200000001, 0x100000001, True),  # the first of a later epoch
        (0x500000001, 0x100000009, True),
        (0x200000002, 0x100000001, False),
        (0x100000001, 0x200000001, False),  # an earlier epoch
        (1, 0, True),
        (0x100000001, 0, True),
        (0x100000000, 0, False),  # of no transaction
    ],
)
def test_follows(zxid: int, last: int, follows: bool) -> None:
    """A transaction follows the one before it in its epoch, or is the first of a later epoch."""
    assert zxids.follows(zxid, last) is follows


def test_an_epoch_ends() -> None:
    """The counter must not overflow into the epoch (ZOOKEEPER-1277)."""
    assert zxids.is_exhausted(0x1FFFFFFFF)
    assert not zxids.is_exhausted(0x1FFFFFFFE)
    assert not zxids.is_exhausted(0x200000000)
