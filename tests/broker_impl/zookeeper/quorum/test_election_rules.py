"""Votes are ordered by epoch, then zxid, then server id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper.quorum import election_rules as rules
from broker_impl.zookeeper.quorum.notifications import Vote

VOTES = st.builds(Vote, st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))


@pytest.mark.parametrize(
    ("new", "current", "better"),
    [
        (Vote(2, 1, 1), Vote(1, 9, 9), True),  # the epoch decides first (ZOOKEEPER-1291)
        (Vote(1, 9, 9), Vote(2, 1, 1), False),
        (Vote(1, 2, 1), Vote(1, 1, 3), True),  # then the zxid, not the id
        (Vote(1, 1, 3), Vote(1, 2, 1), False),
        (Vote(1, 1, 3), Vote(1, 1, 2), True),
        (Vote(1, 1, 2), Vote(1, 1, 2), False),
    ],
)
def test_supersedes(new: Vote, current: Vote, better: bool) -> None:
    """A vote supersedes another by epoch, then zxid, then id; never an equal one."""
    assert rules.supersedes(new, current) is better


@given(VOTES, VOTES, VOTES)
def test_the_order_is_total(one: Vote, two: Vote, three: Vote) -> None:
    """Of two different votes exactly one supersedes the other, and the order is transitive."""
    assert rules.supersedes(one, two) + rules.supersedes(two, one) == (one != two)
    if rules.supersedes(one, two) and rules.supersedes(two, three):
        assert rules.supersedes(one, three)
    assert rules.better_of(one, two) == max(one, two)


def test_established_votes_agree_in_leader_and_epoch() -> None:
    """Servers that have a leader may state different zxids, but not other leaders or epochs."""
    vote = Vote(2, 5, 1)
    assert rules.agree(vote, vote._replace(zxid=9))
    assert not rules.agree(vote, vote._replace(epoch=3))
    assert not rules.agree(vote, vote._replace(leader=2))
