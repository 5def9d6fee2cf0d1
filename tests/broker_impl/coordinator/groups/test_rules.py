import pytest

from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.groups.states import State
from broker_impl.errors import ErrorCode as E


@pytest.mark.parametrize(
    ("is_member", "instance", "holder", "error"),
    [
        (True, None, None, E.NONE),
        (False, None, None, E.UNKNOWN_MEMBER_ID),
        (True, "i", "m", E.NONE),
        (False, "i", None, E.UNKNOWN_MEMBER_ID),
        (False, "i", "other", E.FENCED_INSTANCE_ID),  # replaced, and told so
        (True, "i", "other", E.FENCED_INSTANCE_ID),  # two of its names, one of them taken
    ],
)
def test_member_error(is_member: bool, instance: str | None, holder: str | None, error: E) -> None:
    """A static member answers for its instance, any member for its id (KIP-345)."""
    assert rules.member_error(is_member, instance, holder, "m") is error


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (State.EMPTY, E.NONE),
        (State.PREPARING, E.NONE),
        (State.COMPLETING, E.REBALANCE_IN_PROGRESS),
        (State.STABLE, E.NONE),
        (State.DEAD, E.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_commit_state_error(state: State, error: E) -> None:
    """Members may commit until a new generation begins, and again once it is assigned."""
    assert rules.commit_state_error(state) is error


@pytest.mark.parametrize("state", State)
def test_static_join_rebalances(state: State) -> None:
    """A static member comes back unnoticed in Stable, under the same protocol, only."""
    assert rules.static_join_rebalances(state, True) == (state is State.COMPLETING)
    assert rules.static_join_rebalances(state, False) == (state in (State.STABLE, State.COMPLETING))


@pytest.mark.parametrize(
    ("committed", "own", "unused_since", "at"),
    [
        (5, -1, -1, 105),  # from its commit
        (5, -1, 50, 150),  # from when the group was left
        (60, -1, 50, 160),
        (5, 30, 50, 30),  # an expiry of its own (before KIP-211)
    ],
)
def test_expires_at_ms(committed: int, own: int, unused_since: int, at: int) -> None:
    """Retention begins with the last use."""
    assert rules.expires_at_ms(committed, own, 100, unused_since) == at


@pytest.mark.parametrize(
    ("error", "of_assignment", "of_commit"),
    [
        (E.NONE, E.NONE, E.NONE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.REBALANCE_IN_PROGRESS, E.REQUEST_TIMED_OUT),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR, E.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_errors_of_writes(error: E, of_assignment: E, of_commit: E) -> None:
    """What befalls the log is told in the words of groups."""
    assert rules.assignment_error(error) is of_assignment
    assert rules.commit_error(error) is of_commit


def test_supersedes() -> None:
    """The later record counts; the same one told twice changes nothing (KAFKA-5247)."""
    assert rules.supersedes(3, None)
    assert rules.supersedes(3, 2)
    assert rules.supersedes(3, 3)
    assert not rules.supersedes(2, 3)


def test_is_subscribed() -> None:
    """Doubt protects offsets (KAFKA-8954)."""
    assert rules.is_subscribed(frozenset({"t"}), "t")
    assert not rules.is_subscribed(frozenset({"t"}), "u")
    assert rules.is_subscribed(None, "u")


@pytest.mark.parametrize(
    ("is_writing", "is_pending", "is_settled"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_settled(is_writing: bool, is_pending: bool, is_settled: bool) -> None:
    """Of what has been begun nothing may be left, not even for a transaction to decide."""
    assert rules.is_settled(is_writing=is_writing, is_pending=is_pending) is is_settled
