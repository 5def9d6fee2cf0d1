"""What a learner promises and acknowledges is durable before the answer."""

import copy

import pytest

from broker_impl.zookeeper.quorum import learner_rules as rules
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory, create, session, z


@pytest.mark.parametrize(
    ("epoch", "accepted", "follows"), [(3, 2, True), (3, 3, True), (2, 3, False)]
)
def test_a_leader_of_an_earlier_epoch_is_not_followed(
    epoch: int, accepted: int, follows: bool
) -> None:
    """A promise to follow no earlier leader is kept; the same epoch may be followed again."""
    assert rules.may_follow(epoch, accepted) is follows


def test_one_epoch_is_promised_once() -> None:
    """A second promise of the same epoch does not count, because the first was to another."""
    assert rules.promise(epoch=3, accepted=2, current=1) == 1
    assert rules.promise(epoch=3, accepted=3, current=1) == rules.NO_PROMISE


def test_transactions_are_durable_before_the_epoch() -> None:
    """After DIFF the transactions are logged first, and the epoch is entered last."""
    history = RecordingHistory()
    history.fill(z(1, 1))
    history.store.accept_epoch(2)
    history.store.taken()
    rules.take_over(history, None, [create(z(1, 2)), create(z(1, 3))], 2)
    assert history.store.taken() == [("append", z(1, 3)), ("enter", 2)]
    assert history.database.last_zxid == z(1, 3)
    assert list(history.uncommitted) == []


def test_nothing_to_take_over_writes_only_the_epoch() -> None:
    """A learner with the same history as its leader writes its epoch alone."""
    history = RecordingHistory()
    history.store.accept_epoch(1)
    history.store.taken()
    rules.take_over(history, None, [], 1)
    assert history.store.taken() == [("enter", 1)]


def test_a_state_is_installed_with_the_transactions_that_follow_it() -> None:
    """After SNAP the state is installed once the committed transactions are in it."""
    leader = RecordingHistory()
    leader.log([session(1), create(2), create(3)])
    leader.commit_to(3)
    state = copy.deepcopy(leader.database)
    history = RecordingHistory()
    history.store.accept_epoch(1)
    history.store.taken()
    rules.take_over(history, state, [create(3), create(4)], 1)
    assert history.store.taken() == [("install", 4), ("enter", 1)]
    assert "/4" in history.database.nodes
    again = RecordingHistory(history.store.memory_of_a_killed_process())
    assert again.database.nodes == history.database.nodes
    assert again.last_zxid == 4


def test_only_what_is_logged_is_acknowledged() -> None:
    """The zxids to acknowledge are those that were appended."""
    history = RecordingHistory()
    assert rules.log(history, [session(1), create(2)]) == [1, 2]
    assert history.store.taken() == [("append", 2)]
    assert history.database.last_zxid == 0, "it is logged, not committed"
