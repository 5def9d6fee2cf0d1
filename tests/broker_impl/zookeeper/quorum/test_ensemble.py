"""Members are parsed and listed as ZooKeeper does, and majorities of the voters decide."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import ConfigError
from broker_impl.zookeeper.quorum.ensemble import (
    Ensemble,
    Member,
    is_quorum,
    supported_by_quorum,
)


def test_a_member_is_parsed() -> None:
    """A member has an id, a host and two ports; its kind is optional."""
    assert Member.parse("3=zk-3:2888:3888") == Member(3, "zk-3", 2888, 3888)
    assert Member.parse("3=zk-3:2888:3888:participant") == Member(3, "zk-3", 2888, 3888)
    assert Member.parse("254=zk:1:2:observer") == Member(254, "zk", 1, 2, observes=True)


@pytest.mark.parametrize(
    "text",
    ["", "1", "1=", "1=host", "1=host:1", "1=host:1:2:3:4", "x=host:1:2", "1=host:a:2",
     "1=host:1:2:leader", "0=host:1:2", "255=host:1:2", "-1=host:1:2"],
)  # fmt: skip
def test_a_malformed_member_is_refused(text: str) -> None:
    """A member without a port, with an unknown kind, or with an id outside 1 to 254 is refused."""
    with pytest.raises(ConfigError):
        Member.parse(text)


def test_an_ensemble_needs_distinct_ids_and_a_voter() -> None:
    """Two members with one id, and an ensemble of observers, are refused."""
    with pytest.raises(ConfigError, match="two servers have the id 1"):
        Ensemble([Member(1, "a", 1, 2), Member(1, "b", 1, 2)])
    with pytest.raises(ConfigError, match="votes"):
        Ensemble([Member(1, "a", 1, 2, observes=True)])


def test_the_configuration_lists_members_by_id() -> None:
    """The configuration has a line for each member in the order of ids, and a version."""
    ensemble = Ensemble([Member(2, "b", 3, 4, observes=True), Member(1, "a", 1, 2)])
    assert ensemble.configuration() == (
        "server.1=a:1:2:participant\nserver.2=b:3:4:observer\nversion=0"
    )


@pytest.mark.parametrize(
    ("voters", "tolerated"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)]
)
def test_a_majority_decides(voters: int, tolerated: int) -> None:
    """An ensemble decides without as many voters as it tolerates, and not without one more."""
    ids = range(1, voters + 1)
    assert is_quorum(ids, ids[tolerated:])
    assert not is_quorum(ids, ids[tolerated + 1 :])


@pytest.mark.parametrize("voters", range(1, 8))
def test_two_quorums_share_a_voter(voters: int) -> None:
    """Any two quorums have a voter in common, so that two leaders cannot commit independently."""
    ids = range(1, voters + 1)
    quorums = [
        set(some)
        for size in range(voters + 1)
        for some in combinations(ids, size)
        if is_quorum(ids, some)
    ]
    assert all(one & other for one in quorums for other in quorums)


def test_observers_do_not_count() -> None:
    """Observers are no part of a quorum, however many there are."""
    members = [Member(id_, "h", 1, 2, observes=id_ > 3) for id_ in range(1, 8)]
    ensemble = Ensemble(members)
    assert ensemble.voters == {1, 2, 3}
    assert not ensemble.has_quorum({1, 4, 5, 6, 7})
    assert ensemble.has_quorum({1, 2})


@given(st.dictionaries(st.integers(1, 7), st.integers(0, 20)), st.integers(1, 7))
def test_the_supported_zxid_is_the_highest_of_a_quorum(
    acknowledged: dict[int, int], count: int
) -> None:
    """The result is the highest zxid that a quorum has reached, as counting for each shows."""
    voters = range(1, count + 1)
    expected = max(
        zxid
        for zxid in range(21)
        if is_quorum(voters, [id_ for id_ in voters if acknowledged.get(id_, 0) >= zxid])
    )
    assert supported_by_quorum(voters, acknowledged, 0) == expected
